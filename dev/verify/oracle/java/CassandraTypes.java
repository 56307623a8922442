import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Date;
import java.util.List;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.cassandra.config.Config;
import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.cql3.ColumnIdentifier;
import org.apache.cassandra.cql3.Duration;
import org.apache.cassandra.db.BufferClusteringBound;
import org.apache.cassandra.db.Clustering;
import org.apache.cassandra.db.ClusteringComparator;
import org.apache.cassandra.db.ClusteringPrefix;
import org.apache.cassandra.db.Columns;
import org.apache.cassandra.db.context.CounterContext;
import org.apache.cassandra.db.marshal.*;
import org.apache.cassandra.schema.CQLTypeParser;
import org.apache.cassandra.schema.ColumnMetadata;
import org.apache.cassandra.schema.Types;
import org.apache.cassandra.serializers.CollectionSerializer;
import org.apache.cassandra.serializers.MarshalException;
import org.apache.cassandra.utils.ByteBufferUtil;
import org.apache.cassandra.utils.TimeUUID;
import org.apache.cassandra.utils.bytecomparable.ByteComparable;
import org.apache.cassandra.utils.bytecomparable.ByteSource;
import org.apache.cassandra.utils.bytecomparable.ByteSourceInverse;

/**
 * Cassandra's own types as the judge: a request is a line of JSON, and so is its answer.
 *
 * Every request has "op", and "user_types" ([{name, field_names, field_types}]) where it has types, which are CQL
 * texts. Values are hex; null is a null.
 */
public class CassandraTypes
{
    private static final JsonNodeFactory JSON = JsonNodeFactory.instance;
    private static final String KEYSPACE = "ks";

    public static void main(String[] arguments) throws Exception
    {
        PrintStream answers = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        System.setOut(System.err);
        DatabaseDescriptor.clientInitialization(true, () -> {
            Config config = new Config();
            // CounterContext asks CompactionManager whether it is a compactor, and that makes its threads.
            config.concurrent_compactors = 1;
            config.concurrent_validations = 1;
            return config;
        });
        ObjectMapper mapper = new ObjectMapper();
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine())
        {
            ObjectNode answer;
            try
            {
                answer = answer(mapper.readTree(line));
            }
            catch (Throwable error)
            {
                answer = JSON.objectNode().put("error", error.getCause() == null ? error.toString() : error + ": " + error.getCause());
            }
            answers.println(mapper.writeValueAsString(answer));
            answers.flush();
        }
    }

    private static ObjectNode answer(JsonNode request)
    {
        String op = request.get("op").asText();
        switch (op)
        {
            case "type": return describe(type(request, request.get("type")));
            case "decode": return decode(request);
            case "valid": return valid(request);
            case "values": return values(request);
            case "clusterings": return clusterings(request);
            case "columns": return columns(request);
            case "counters": return counters(request);
            default: throw new IllegalArgumentException(op);
        }
    }

    private static AbstractType<?> type(JsonNode request, JsonNode text)
    {
        Types.RawBuilder types = Types.rawBuilder(KEYSPACE);
        for (JsonNode type : request.get("user_types"))
            types.add(type.get("name").asText(), texts(type.get("field_names")), texts(type.get("field_types")));
        return CQLTypeParser.parse(KEYSPACE, text.asText(), types.build());
    }

    private static List<String> texts(JsonNode array)
    {
        List<String> texts = new ArrayList<>();
        array.forEach(node -> texts.add(node.asText()));
        return texts;
    }

    private static ByteBuffer bytes(JsonNode hex)
    {
        return hex.isNull() ? null : ByteBufferUtil.hexToBytes(hex.asText());
    }

    private static List<ByteBuffer> buffers(JsonNode array)
    {
        List<ByteBuffer> buffers = new ArrayList<>();
        array.forEach(node -> buffers.add(bytes(node)));
        return buffers;
    }

    private static ObjectNode describe(AbstractType<?> type)
    {
        return JSON.objectNode()
                   .put("text", type.asCQL3Type().toString())
                   .put("is_multi_cell", type.isMultiCell())
                   .put("fixed_length", type.valueLengthIfFixed());
    }

    private static void addKey(ArrayNode keys, ByteComparable comparable)
    {
        try
        {
            ByteSource source = comparable.asComparableBytes(ByteComparable.Version.OSS50);
            keys.add(source == null ? "" : ByteBufferUtil.bytesToHex(ByteBuffer.wrap(ByteSourceInverse.readBytes(source))));
        }
        catch (Throwable error)
        {
            keys.addNull();
        }
    }

    /** The comparable bytes of a type's values. */
    private static ObjectNode values(JsonNode request)
    {
        AbstractType<?> type = type(request, request.get("type"));
        List<ByteBuffer> values = buffers(request.get("values"));
        ArrayNode keys = JSON.arrayNode();
        for (ByteBuffer value : values)
            addKey(keys, version -> type.asComparableBytes(value, version));
        ObjectNode answer = JSON.objectNode();
        answer.set("keys", keys);
        return answer;
    }

    /** The comparable bytes of clusterings and bounds ("prefixes": [{kind, values}]) over "columns" ([{type, is_reversed}]). */
    private static ObjectNode clusterings(JsonNode request)
    {
        List<AbstractType<?>> types = new ArrayList<>();
        for (JsonNode column : request.get("columns"))
        {
            AbstractType<?> type = type(request, column.get("type"));
            types.add(column.get("is_reversed").asBoolean() ? ReversedType.getInstance(type) : type);
        }
        ClusteringComparator comparator = new ClusteringComparator(types);
        List<ClusteringPrefix<?>> prefixes = new ArrayList<>();
        for (JsonNode prefix : request.get("prefixes"))
            prefixes.add(prefix(prefix));
        ArrayNode keys = JSON.arrayNode();
        for (ClusteringPrefix<?> prefix : prefixes)
            addKey(keys, comparator.asByteComparable(prefix));
        ObjectNode answer = JSON.objectNode();
        answer.set("keys", keys);
        return answer;
    }

    private static ClusteringPrefix<?> prefix(JsonNode prefix)
    {
        ByteBuffer[] values = buffers(prefix.get("values")).toArray(new ByteBuffer[0]);
        ClusteringPrefix.Kind kind = ClusteringPrefix.Kind.valueOf(prefix.get("kind").asText());
        return kind == ClusteringPrefix.Kind.CLUSTERING ? Clustering.make(values)
                                                        : BufferClusteringBound.create(kind, values);
    }

    private static ColumnMetadata column(String name, AbstractType<?> type)
    {
        return new ColumnMetadata(KEYSPACE, "t", new ColumnIdentifier(name, true), type, ColumnMetadata.NO_POSITION,
                                  ColumnMetadata.Kind.REGULAR, null);
    }

    /** The names of regular columns in the order in which updates and rows have them. */
    private static ObjectNode columns(JsonNode request)
    {
        List<ColumnMetadata> columns = new ArrayList<>();
        for (JsonNode column : request.get("columns"))
            columns.add(column(column.get("name").asText(), type(request, column.get("type"))));
        ObjectNode answer = JSON.objectNode();
        ArrayNode names = answer.putArray("names");
        for (ColumnMetadata column : Columns.from(columns))
            names.add(column.name.toString());
        return answer;
    }

    /** Each of "contexts" merged with each, and all totals. */
    private static ObjectNode counters(JsonNode request)
    {
        List<ByteBuffer> contexts = buffers(request.get("contexts"));
        ObjectNode answer = JSON.objectNode();
        ArrayNode totals = answer.putArray("totals");
        ArrayNode merged = answer.putArray("merged");
        for (ByteBuffer left : contexts)
        {
            totals.add(CounterContext.instance().total(left, ByteBufferAccessor.instance));
            ArrayNode row = merged.addArray();
            for (ByteBuffer right : contexts)
                row.add(ByteBufferUtil.bytesToHex(CounterContext.instance().merge(left.duplicate(), right.duplicate())));
        }
        return answer;
    }

    /** Whether a node takes each value: AbstractType.validate, which is all that a write asks. */
    private static ObjectNode valid(JsonNode request)
    {
        AbstractType<?> type = type(request, request.get("type"));
        ObjectNode answer = JSON.objectNode();
        ArrayNode valid = answer.putArray("valid");
        for (ByteBuffer value : buffers(request.get("values")))
        {
            try
            {
                type.validate(value);
                valid.add(true);
            }
            catch (MarshalException error)
            {
                valid.add(false);
            }
        }
        return answer;
    }

    private static ObjectNode decode(JsonNode request)
    {
        AbstractType<?> type = type(request, request.get("type"));
        ObjectNode answer = JSON.objectNode();
        ArrayNode decoded = answer.putArray("decoded");
        for (ByteBuffer value : buffers(request.get("values")))
        {
            try
            {
                type.validate(value);
                decoded.add(JSON.arrayNode().add(decoded(type, value)));
            }
            catch (Throwable error)
            {
                decoded.addNull();
            }
        }
        return answer;
    }

    private static JsonNode decoded(AbstractType<?> type, ByteBuffer value)
    {
        ArrayNode array = JSON.arrayNode();
        if (type instanceof CollectionType)
        {
            CollectionType<?> collection = (CollectionType<?>) type;
            boolean isMap = collection.kind == CollectionType.Kind.MAP;
            AbstractType<?> keys = collection.kind == CollectionType.Kind.LIST ? collection.valueComparator()
                                                                                : collection.nameComparator();
            int size = CollectionSerializer.readCollectionSize(value, ByteBufferAccessor.instance);
            int offset = CollectionSerializer.sizeOfCollectionSize();
            if (size < 0)
                throw new IllegalArgumentException("the serializers refuse it when they deserialize");
            for (int i = 0; i < size; i++)
            {
                ByteBuffer element = CollectionSerializer.readValue(value, ByteBufferAccessor.instance, offset);
                offset += CollectionSerializer.sizeOfValue(element, ByteBufferAccessor.instance);
                if (isMap)
                {
                    ByteBuffer mapped = CollectionSerializer.readValue(value, ByteBufferAccessor.instance, offset);
                    offset += CollectionSerializer.sizeOfValue(mapped, ByteBufferAccessor.instance);
                    array.addArray().add(decoded(keys, element)).add(decoded(collection.valueComparator(), mapped));
                }
                else
                    array.add(decoded(keys, element));
            }
            return array;
        }
        if (type instanceof TupleType)
        {
            if (!value.hasRemaining())
                return JSON.nullNode();
            TupleType tuple = (TupleType) type;
            ByteBuffer[] fields = tuple.split(ByteBufferAccessor.instance, value);
            for (int i = 0; i < tuple.size(); i++)
                array.add(i >= fields.length || fields[i] == null ? JSON.nullNode() : decoded(tuple.type(i), fields[i]));
            return array;
        }
        if (type instanceof VectorType)
        {
            VectorType<?> vector = (VectorType<?>) type;
            for (ByteBuffer element : vector.split(value))
                array.add(decoded(vector.elementType, element));
            return array;
        }
        return natural(type, type.compose(value), value);
    }

    /** Numbers as text, floating ones by their bits, addresses and custom types by their bytes. */
    private static JsonNode natural(AbstractType<?> type, Object composed, ByteBuffer value)
    {
        if (composed == null)
            return JSON.nullNode();
        if (type instanceof SimpleDateType)
            return JSON.textNode(Long.toString(((Integer) composed & 0xFFFFFFFFL) - (1L << 31)));
        if (composed instanceof Date)
            return JSON.textNode(Long.toString(((Date) composed).getTime()));
        if (composed instanceof Float)
            return JSON.textNode(Long.toHexString(Double.doubleToLongBits((Float) composed)));
        if (composed instanceof Double)
            return JSON.textNode(Long.toHexString(Double.doubleToLongBits((Double) composed)));
        if (composed instanceof BigDecimal)
            return JSON.textNode(((BigDecimal) composed).unscaledValue() + "/" + ((BigDecimal) composed).scale());
        if (composed instanceof Duration)
        {
            Duration duration = (Duration) composed;
            return JSON.textNode(duration.getMonths() + "/" + duration.getDays() + "/" + duration.getNanoseconds());
        }
        if (type instanceof InetAddressType || composed instanceof ByteBuffer)
            return JSON.textNode(ByteBufferUtil.bytesToHex(value));
        if (composed instanceof TimeUUID)
            return JSON.textNode(((TimeUUID) composed).asUUID().toString());
        return JSON.textNode(composed.toString());
    }
}
