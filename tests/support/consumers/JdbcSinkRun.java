import io.apicurio.registry.utils.converter.avro.AvroData;
import io.debezium.connector.jdbc.JdbcSinkConnectorTask;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.io.DecoderFactory;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.sink.SinkTaskContext;

/** Debezium's JDBC sink as a Kafka Connect worker runs it: Avro by its converter's mapping, then the task's own put. */
public final class JdbcSinkRun {
    private final JdbcSinkConnectorTask task = new JdbcSinkConnectorTask();
    private final AvroData data = new AvroData(1000);
    private final Map<String, Schema> schemas = new HashMap<>();
    private final Set<TopicPartition> assignment = new HashSet<>();
    private final List<SinkRecord> records = new ArrayList<>();

    public void start(Map<String, String> settings, String topic) {
        TopicPartition partition = new TopicPartition(topic, 0);
        assignment.add(partition);
        SinkTaskContext context = (SinkTaskContext) Proxy.newProxyInstance(
            SinkTaskContext.class.getClassLoader(),
            new Class<?>[] {SinkTaskContext.class},
            (proxy, method, arguments) -> {
                switch (method.getName()) {
                    case "assignment": return assignment;
                    case "configs": return settings;
                    default: return null;
                }
            });
        task.initialize(context);
        task.start(settings);
        task.open(assignment);
    }

    public void add(String topic, long offset, String keySchema, byte[] key, String valueSchema, byte[] value)
        throws Exception {
        SchemaAndValue k = read(keySchema, key);
        SchemaAndValue v = value == null ? SchemaAndValue.NULL : read(valueSchema, value);
        records.add(new SinkRecord(topic, 0, k.schema(), k.value(), v.schema(), v.value(), offset,
            1_795_000_000_000L, TimestampType.LOG_APPEND_TIME));
    }

    /** Puts what was added; an error of the sink comes with the next put, so there is one more. Returns nanoseconds. */
    public long put() {
        long start = System.nanoTime();
        task.put(new ArrayList<>(records));
        records.clear();
        task.put(new ArrayList<>());
        return System.nanoTime() - start;
    }

    public void stop() {
        task.stop();
    }

    private SchemaAndValue read(String text, byte[] bytes) throws Exception {
        Schema schema = schemas.computeIfAbsent(text, given -> new Schema.Parser().parse(given));
        Object read = new GenericDatumReader<Object>(schema, schema, new GenericData())
            .read(null, DecoderFactory.get().binaryDecoder(bytes, 5, bytes.length - 5, null));
        return data.toConnectData(schema, read);
    }
}
