// Prints the changes of a table, one JSON object a line, up to the present end of its topic.
// read-topic BOOTSTRAP REGISTRY_URL TOPIC. It needs franz-go and hamba/avro.
package main

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log"
	"math"
	"net/http"
	"os"

	"github.com/hamba/avro/v2"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

var (
	registry string
	schemas  = map[uint32]avro.Schema{}
)

func main() {
	bootstrap, topic := os.Args[1], os.Args[3]
	registry = os.Args[2]
	client, err := kgo.NewClient(
		kgo.SeedBrokers(bootstrap),
		kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(), // the last one ends the topic
	)
	check(err)
	defer client.Close()
	ctx := context.Background()
	ends, err := kadm.NewClient(client).ListCommittedOffsets(ctx, topic)
	check(err)
	left := map[int32]int64{}
	ends.Each(func(end kadm.ListedOffset) {
		if end.Offset > 0 {
			left[end.Partition] = end.Offset
		}
	})
	for len(left) > 0 {
		fetches := client.PollFetches(ctx)
		check(fetches.Err())
		fetches.EachRecord(func(record *kgo.Record) {
			if !record.Attrs.IsControl() {
				show(record)
			}
			if end, ok := left[record.Partition]; ok && record.Offset+1 >= end {
				delete(left, record.Partition)
			}
		})
	}
}

func show(record *kgo.Record) {
	line := map[string]any{"key": decode(record.Key), "op": nil, "after": nil}
	if record.Value != nil { // otherwise a tombstone
		change := decode(record.Value)
		line["op"], line["after"] = change["op"], change["after"]
	}
	text, err := json.Marshal(line)
	check(err)
	fmt.Println(string(text))
}

// decode reads Confluent's wire format: 0, the schema's id in 4 bytes, then Avro.
func decode(message []byte) map[string]any {
	schema := schemaOf(binary.BigEndian.Uint32(message[1:5]))
	var value any
	check(avro.Unmarshal(schema, message[5:], &value))
	return plain(schema, value).(map[string]any)
}

func schemaOf(id uint32) avro.Schema {
	if found, ok := schemas[id]; ok {
		return found
	}
	response, err := http.Get(fmt.Sprintf("%s/schemas/ids/%d", registry, id))
	check(err)
	defer response.Body.Close()
	var answer struct{ Schema string }
	check(json.NewDecoder(response.Body).Decode(&answer))
	var tree any
	check(json.Unmarshal([]byte(answer.Schema), &tree))
	text, err := json.Marshal(withoutLogicalTypes(tree))
	check(err)
	// A cache of its own: the records of two versions of a schema have the same names.
	schemas[id], err = avro.ParseWithCache(string(text), "", &avro.SchemaCache{})
	check(err)
	return schemas[id]
}

// withoutLogicalTypes leaves timestamps, dates and decimals as Avro stores them.
func withoutLogicalTypes(schema any) any {
	switch part := schema.(type) {
	case map[string]any:
		delete(part, "logicalType")
		for name, inner := range part {
			part[name] = withoutLogicalTypes(inner)
		}
	case []any:
		for at, inner := range part {
			part[at] = withoutLogicalTypes(inner)
		}
	}
	return schema
}

// plain makes what JSON can hold: no bytes, no NaN and no infinities. Of a union with null it gives the value itself,
// which hamba/avro puts into a map with the type's name unless it is a primitive one.
func plain(schema avro.Schema, value any) any {
	if value == nil {
		return nil
	}
	switch of := schema.(type) {
	case *avro.RefSchema:
		return plain(of.Schema(), value)
	case *avro.UnionSchema:
		inner := of.Types()[1]
		branch, isWrapped := value.(map[string]any)
		if _, isPrimitive := inner.(*avro.PrimitiveSchema); isPrimitive || !isWrapped {
			return plain(inner, value)
		}
		for _, found := range branch {
			return plain(inner, found)
		}
	case *avro.RecordSchema:
		found := value.(map[string]any)
		for _, field := range of.Fields() {
			found[field.Name()] = plain(field.Type(), found[field.Name()])
		}
	case *avro.MapSchema:
		found := value.(map[string]any)
		for name, item := range found {
			found[name] = plain(of.Values(), item)
		}
	case *avro.ArraySchema:
		found := value.([]any)
		for at, item := range found {
			found[at] = plain(of.Items(), item)
		}
	}
	switch found := value.(type) {
	case []byte:
		return "0x" + hex.EncodeToString(found)
	case float32:
		if other, ok := special(float64(found)); ok {
			return other
		}
	case float64:
		if other, ok := special(found); ok {
			return other
		}
	}
	return value
}

func special(number float64) (string, bool) {
	switch {
	case math.IsNaN(number):
		return "NaN", true
	case math.IsInf(number, 1):
		return "Infinity", true
	case math.IsInf(number, -1):
		return "-Infinity", true
	}
	return "", false
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
