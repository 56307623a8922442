import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.db.ClusteringPrefix;
import org.apache.cassandra.db.DeletionTime;
import org.apache.cassandra.db.Mutation;
import org.apache.cassandra.db.RangeTombstone;
import org.apache.cassandra.db.commitlog.CommitLogDescriptor;
import org.apache.cassandra.db.commitlog.CommitLogReadHandler;
import org.apache.cassandra.db.commitlog.CommitLogReader;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.db.rows.Cell;
import org.apache.cassandra.db.rows.ColumnData;
import org.apache.cassandra.db.rows.ComplexColumnData;
import org.apache.cassandra.db.rows.DeserializationHelper;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.io.util.DataInputBuffer;
import org.apache.cassandra.io.util.DataOutputBuffer;
import org.apache.cassandra.io.util.File;
import org.apache.cassandra.schema.Schema;
import org.apache.cassandra.utils.ByteBufferUtil;
import org.apache.cassandra.utils.JsonUtils;

/**
 * Cassandra's own readers as judges. One command a line on stdin, JSON lines on stdout; the schema is that of the
 * (stopped) node whose cassandra.yaml -Dcassandra.config names.
 *
 * <pre>
 * segment TAB path           one line a mutation, {"corrupt": reason} a complaint, then {"end": true}
 * update TAB version TAB version to write TAB hex
 *                            one line: the PartitionUpdate and, as "again", its bytes serialized anew
 * </pre>
 */
public final class CommitLogOracle
{
    private static PrintStream out;

    public static void main(String[] arguments) throws IOException
    {
        out = System.out;
        System.setOut(System.err);
        DatabaseDescriptor.toolInitialization();
        Schema.instance.loadFromDisk();
        say(Map.of("ready", true));
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine())
        {
            String[] words = line.split("\t");
            if (words[0].equals("segment"))
                readSegment(words[1]);
            else
                readUpdate(Integer.parseInt(words[1]), Integer.parseInt(words[2]), ByteBufferUtil.hexToBytes(words[3]));
        }
        System.exit(0);
    }

    private static void say(Object value)
    {
        out.println(new String(JsonUtils.writeAsJsonBytes(value), StandardCharsets.UTF_8));
        out.flush();
    }

    private static void readSegment(String path) throws IOException
    {
        CommitLogReadHandler handler = new CommitLogReadHandler()
        {
            public boolean shouldSkipSegmentOnError(CommitLogReadException error)
            {
                say(Map.of("corrupt", error.getMessage()));
                return false;
            }

            public void handleUnrecoverableError(CommitLogReadException error)
            {
                say(Map.of("corrupt", error.getMessage()));
            }

            public void handleMutation(Mutation mutation, int size, int position, CommitLogDescriptor descriptor)
            {
                List<Object> updates = new ArrayList<>();
                for (PartitionUpdate update : mutation.getPartitionUpdates())
                    updates.add(describe(update));
                say(Map.of("position", position, "size", size, "updates", updates));
            }
        };
        CommitLogReader reader = new CommitLogReader();
        reader.readCommitLogSegment(handler, new File(path), true);
        say(Map.of("end", true, "unknown", reader.getInvalidMutations().size()));
    }

    private static void readUpdate(int version, int writeVersion, ByteBuffer bytes)
    {
        try (DataInputBuffer input = new DataInputBuffer(bytes, true); DataOutputBuffer output = new DataOutputBuffer())
        {
            PartitionUpdate update =
                PartitionUpdate.serializer.deserialize(input, version, DeserializationHelper.Flag.LOCAL);
            PartitionUpdate.serializer.serialize(update, output, writeVersion);
            Map<String, Object> said = describe(update);
            said.put("left", input.available());
            said.put("again", ByteBufferUtil.bytesToHex(output.asNewBuffer()));
            say(said);
        }
        catch (Throwable error)
        {
            say(Map.of("error", error.toString()));
        }
    }

    private static Map<String, Object> describe(PartitionUpdate update)
    {
        Map<String, Object> said = new LinkedHashMap<>();
        said.put("table", update.metadata().keyspace + "." + update.metadata().name);
        said.put("key", hex(update.partitionKey().getKey()));
        said.put("deletion", describe(update.partitionLevelDeletion()));
        said.put("static", update.staticRow().isEmpty() ? null : describe(update.staticRow()));
        List<Object> rows = new ArrayList<>();
        for (Row row : update)
            rows.add(describe(row));
        said.put("rows", rows);
        List<Object> ranges = new ArrayList<>();
        Iterator<RangeTombstone> tombstones = update.deletionInfo().rangeIterator(false);
        while (tombstones.hasNext())
        {
            RangeTombstone range = tombstones.next();
            ClusteringPrefix<?> start = range.deletedSlice().start();
            ClusteringPrefix<?> end = range.deletedSlice().end();
            ranges.add(List.of(start.kind().ordinal(), values(start), end.kind().ordinal(), values(end),
                               describe(range.deletionTime())));
        }
        said.put("ranges", ranges);
        return said;
    }

    private static Map<String, Object> describe(Row row)
    {
        Map<String, Object> said = new LinkedHashMap<>();
        said.put("clustering", row.isStatic() ? List.of() : values(row.clustering()));
        said.put("liveness", List.of(row.primaryKeyLivenessInfo().timestamp(), row.primaryKeyLivenessInfo().ttl(),
                                     row.primaryKeyLivenessInfo().localExpirationTime()));
        said.put("deletion", List.of(describe(row.deletion().time()), row.deletion().isShadowable()));
        Map<String, Object> columns = new LinkedHashMap<>();
        for (ColumnData data : row)
            columns.put(data.column().name.toString(), describe(data));
        said.put("columns", columns);
        return said;
    }

    private static Object describe(ColumnData data)
    {
        if (data.column().isSimple())
            return describe((Cell<?>) data);
        ComplexColumnData complex = (ComplexColumnData) data;
        List<Object> cells = new ArrayList<>();
        for (Cell<?> cell : complex)
            cells.add(describe(cell));
        return List.of(describe(complex.complexDeletion()), cells);
    }

    private static List<Object> describe(Cell<?> cell)
    {
        List<Object> said = new ArrayList<>();
        said.add(cell.timestamp());
        said.add(hex(cell.buffer()));
        said.add(cell.localDeletionTime());
        said.add(cell.ttl());
        said.add(cell.path() == null ? null : hex(cell.path().get(0)));
        return said;
    }

    private static List<Object> describe(DeletionTime time)
    {
        return List.of(time.markedForDeleteAt(), time.localDeletionTime());
    }

    private static List<Object> values(ClusteringPrefix<?> prefix)
    {
        List<Object> said = new ArrayList<>();
        for (int i = 0; i < prefix.size(); i++)
            said.add(prefix.get(i) == null ? null : hex(prefix.bufferAt(i)));
        return said;
    }

    private static String hex(ByteBuffer bytes)
    {
        return ByteBufferUtil.bytesToHex(bytes);
    }
}
