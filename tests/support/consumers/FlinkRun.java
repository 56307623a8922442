import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;

/** Flink SQL in this process: each query is a job of a small cluster of its own. */
public final class FlinkRun {
    private final TableEnvironment tables;

    public FlinkRun() {
        Configuration configuration = new Configuration();
        configuration.setString("parallelism.default", "1");
        configuration.setString("table.local-time-zone", "UTC");
        configuration.setString("restart-strategy.type", "disable");
        EnvironmentSettings settings =
            EnvironmentSettings.newInstance().inStreamingMode().withConfiguration(configuration).build();
        tables = TableEnvironment.create(settings);
    }

    public void set(String option, String value) {
        tables.getConfig().set(option, value);
    }

    public void execute(String statement) {
        tables.executeSql(statement);
    }

    /** The changes that a query of bounded sources gives, each as a JSON array: the kind (+I, -U, +U, -D), then fields. */
    public List<String> changes(String query) throws Exception {
        List<String> found = new ArrayList<>();
        try (CloseableIterator<Row> rows = tables.executeSql(query).collect()) {
            while (rows.hasNext()) {
                Row row = rows.next();
                StringBuilder text = new StringBuilder("[").append(quoted(row.getKind().shortString()));
                for (int at = 0; at < row.getArity(); at++) {
                    text.append(",").append(json(row.getField(at)));
                }
                found.add(text.append("]").toString());
            }
        }
        return found;
    }

    /** Numbers stay numbers; days, and milliseconds, since 1970; bytes as hexadecimal. */
    static String json(Object value) {
        if (value == null || value instanceof Boolean || value instanceof Integer || value instanceof Long
            || value instanceof Short || value instanceof Byte) {
            return String.valueOf(value);
        }
        if (value instanceof LocalDate) {
            return String.valueOf(((LocalDate) value).toEpochDay());
        }
        if (value instanceof LocalDateTime) {
            return String.valueOf(((LocalDateTime) value).toInstant(ZoneOffset.UTC).toEpochMilli());
        }
        if (value instanceof byte[]) {
            StringBuilder text = new StringBuilder("\"0x");
            for (byte one : (byte[]) value) {
                text.append(String.format("%02x", one));
            }
            return text.append('"').toString();
        }
        if (value instanceof Object[]) {
            List<String> items = new ArrayList<>();
            for (Object item : (Object[]) value) {
                items.add(json(item));
            }
            return "[" + String.join(",", items) + "]";
        }
        if (value instanceof Map) {
            List<String> items = new ArrayList<>();
            for (Map.Entry<?, ?> entry : ((Map<?, ?>) value).entrySet()) {
                items.add(quoted(String.valueOf(entry.getKey())) + ":" + json(entry.getValue()));
            }
            return "{" + String.join(",", items) + "}";
        }
        if (value instanceof Row) {
            List<String> items = new ArrayList<>();
            for (String name : ((Row) value).getFieldNames(true)) {
                items.add(quoted(name) + ":" + json(((Row) value).getField(name)));
            }
            return "{" + String.join(",", items) + "}";
        }
        if (value instanceof Float || value instanceof Double) {
            double number = ((Number) value).doubleValue();
            return Double.isFinite(number) ? String.valueOf(value) : quoted(String.valueOf(value));
        }
        return quoted(String.valueOf(value));
    }

    static String quoted(String text) {
        StringBuilder found = new StringBuilder("\"");
        for (char one : text.toCharArray()) {
            if (one == '"' || one == '\\') {
                found.append('\\').append(one);
            } else if (one < ' ' || one > '~') {
                found.append(String.format("\\u%04x", (int) one));
            } else {
                found.append(one);
            }
        }
        return found.append('"').toString();
    }
}
