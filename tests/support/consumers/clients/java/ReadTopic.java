import com.fasterxml.jackson.databind.ObjectMapper;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericArray;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.DecoderFactory;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Prints the changes of a table, one JSON object a line, up to the present end of its topic.
 * ReadTopic BOOTSTRAP REGISTRY_URL TOPIC. It needs kafka-clients and Apache Avro.
 */
public final class ReadTopic {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final HttpClient HTTP = HttpClient.newHttpClient();
    private static final Map<Integer, Schema> SCHEMAS = new HashMap<>();
    private static String registry;

    public static void main(String[] arguments) throws Exception {
        registry = arguments[1];
        Map<String, Object> settings = Map.of("bootstrap.servers", arguments[0], "isolation.level", "read_committed",
            "auto.offset.reset", "earliest", "enable.auto.commit", "false");
        try (KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            List<TopicPartition> partitions = new ArrayList<>();
            consumer.partitionsFor(arguments[2]).forEach(of -> partitions.add(new TopicPartition(of.topic(), of.partition())));
            consumer.assign(partitions);
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            while (partitions.stream().anyMatch(of -> consumer.position(of) < ends.get(of))) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofSeconds(1))) {
                    print(record);
                }
            }
        }
    }

    private static void print(ConsumerRecord<byte[], byte[]> record) throws Exception {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("key", plain(decode(record.key())));
        GenericRecord change = record.value() == null ? null : decode(record.value()); // null: a tombstone
        line.put("op", change == null ? null : change.get("op").toString());
        line.put("after", change == null ? null : plain(change.get("after")));
        System.out.println(JSON.writeValueAsString(line));
    }

    /** Reads Confluent's wire format: 0, the schema's id in 4 bytes, then Avro. */
    private static GenericRecord decode(byte[] message) throws Exception {
        int id = ByteBuffer.wrap(message, 1, 4).getInt();
        if (!SCHEMAS.containsKey(id)) {
            HttpRequest request = HttpRequest.newBuilder(URI.create(registry + "/schemas/ids/" + id)).build();
            String answer = HTTP.send(request, HttpResponse.BodyHandlers.ofString()).body();
            SCHEMAS.put(id, new Schema.Parser().parse(JSON.readTree(answer).get("schema").asText()));
        }
        GenericDatumReader<GenericRecord> reader = new GenericDatumReader<>(SCHEMAS.get(id), SCHEMAS.get(id), new GenericData());
        return reader.read(null, DecoderFactory.get().binaryDecoder(message, 5, message.length - 5, null));
    }

    /** JSON has no bytes, no NaN and no infinities. */
    private static Object plain(Object value) {
        if (value instanceof GenericRecord) {
            Map<String, Object> found = new LinkedHashMap<>();
            for (Schema.Field field : ((GenericRecord) value).getSchema().getFields()) {
                found.put(field.name(), plain(((GenericRecord) value).get(field.pos())));
            }
            return found;
        }
        if (value instanceof Map) {
            Map<String, Object> found = new LinkedHashMap<>();
            ((Map<?, ?>) value).forEach((key, item) -> found.put(key.toString(), plain(item)));
            return found;
        }
        if (value instanceof GenericArray) {
            List<Object> found = new ArrayList<>();
            ((GenericArray<?>) value).forEach(item -> found.add(plain(item)));
            return found;
        }
        if (value instanceof ByteBuffer) {
            StringBuilder text = new StringBuilder("0x");
            for (ByteBuffer bytes = ((ByteBuffer) value).duplicate(); bytes.hasRemaining(); ) {
                text.append(String.format("%02x", bytes.get()));
            }
            return text.toString();
        }
        if (value instanceof CharSequence) {
            return value.toString();
        }
        if (value instanceof Float || value instanceof Double) {
            return Double.isFinite(((Number) value).doubleValue()) ? value : value.toString();
        }
        return value;
    }
}
