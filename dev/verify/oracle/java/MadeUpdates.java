import java.nio.ByteBuffer;
import java.util.Random;

import org.apache.cassandra.db.Clustering;
import org.apache.cassandra.db.LivenessInfo;
import org.apache.cassandra.db.context.CounterContext;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.db.rows.BufferCell;
import org.apache.cassandra.db.rows.Cell;
import org.apache.cassandra.db.rows.CellPath;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.utils.CounterId;

/**
 * Random updates that no statement makes, built by Cassandra's own classes: counters with global, local and remote
 * shards side by side, local deletion times anywhere in their range, shadowable deletions, expired liveness.
 *
 * Of tables with one int as partition key, clusterings of one column, and columns of int, text, blob, counter and
 * set of int.
 */
final class MadeUpdates
{
    private static final long FAR = 2_000_000_000L;
    private static final int MOST_TTL = 1000;

    private final Random random;

    MadeUpdates(long seed)
    {
        random = new Random(seed);
    }

    PartitionUpdate update(String keyspace, String table)
    {
        var metadata = Api.metadata(keyspace, table);
        var builder = Api.rowBuilder();
        builder.newRow(Clustering.make(value("text")));
        fill(builder, Api.regulars(metadata));
        Row row = builder.build();
        Row statics = null;
        if (random.nextInt(3) == 0 && Api.statics(metadata).iterator().hasNext())
        {
            var built = Api.rowBuilder();
            built.newRow(Clustering.STATIC_CLUSTERING);
            cells(built, Api.statics(metadata));
            statics = built.build();
        }
        return PartitionUpdate.singleRowUpdate(metadata, Api.key(metadata, value("int")), row, statics);
    }

    private void fill(Row.Builder builder, Iterable<? extends Api.Column> columns)
    {
        switch (random.nextInt(5))
        {
            case 0: builder.addPrimaryKeyLivenessInfo(LivenessInfo.create(timestamp(), 0)); break;
            case 1: builder.addPrimaryKeyLivenessInfo(Times.liveness(timestamp(), 1 + random.nextInt(MOST_TTL), seconds())); break;
            case 2: builder.addPrimaryKeyLivenessInfo(Times.liveness(timestamp(), Integer.MAX_VALUE, seconds())); break;
            default: break;
        }
        if (random.nextInt(4) == 0)
        {
            var time = Times.deletion(timestamp(), seconds());
            builder.addRowDeletion(random.nextBoolean() ? Row.Deletion.regular(time) : Row.Deletion.shadowable(time));
        }
        cells(builder, columns);
    }

    private void cells(Row.Builder builder, Iterable<? extends Api.Column> columns)
    {
        for (var column : columns)
        {
            if (random.nextBoolean())
                continue;
            if (column.isComplex() && random.nextInt(3) == 0)
                column.addDeletion(builder, Times.deletion(timestamp(), seconds()));
            for (int i = column.isComplex() ? random.nextInt(4) : 1; i > 0; i--)
                builder.addCell(cell(column));
        }
    }

    private Cell cell(Api.Column column)
    {
        CellPath path = column.isComplex() ? CellPath.create(value("int")) : null;
        ByteBuffer value = column.isComplex() ? ByteBuffer.allocate(0) : value(column.type());
        switch (column.type().equals("counter") ? 0 : random.nextInt(3))
        {
            case 0: return column.cell(timestamp(), Cell.NO_TTL, null, value, path);
            case 1: return column.cell(timestamp(), 1 + random.nextInt(MOST_TTL), seconds(), value, path);
            default: return column.cell(timestamp(), Cell.NO_TTL, seconds(), ByteBuffer.allocate(0), path);
        }
    }

    private long timestamp()
    {
        return random.nextInt(4) == 0 ? random.nextLong() >> random.nextInt(64) | 1 : random.nextInt(100);
    }

    private long seconds()
    {
        switch (random.nextInt(3))
        {
            case 0: return Times.MOST - random.nextInt(3);
            case 1: return Math.min(Times.MOST, FAR + Math.floorMod(random.nextLong(), FAR));
            default: return MOST_TTL + random.nextInt(2000); // an expiring cell is not older than 1970
        }
    }

    private ByteBuffer value(String type)
    {
        if (type.equals("counter"))
            return context();
        byte[] bytes = new byte[type.equals("int") ? 4 : random.nextInt(6)];
        for (int i = 0; i < bytes.length; i++)
            bytes[i] = (byte) random.nextInt(128);
        return ByteBuffer.wrap(bytes);
    }

    /** Shards of all kinds, in the order of their ids. */
    private ByteBuffer context()
    {
        int[] kinds = random.ints(random.nextInt(5), 0, 3).toArray();
        int[] counts = new int[3];
        for (int kind : kinds)
            counts[kind]++;
        var state = CounterContext.ContextState.allocate(counts[0], counts[1], counts[2]);
        for (int i = 0; i < kinds.length; i++)
        {
            CounterId id = CounterId.fromInt(i);
            switch (kinds[i])
            {
                case 0: state.writeGlobal(id, random.nextLong(), random.nextLong()); break;
                case 1: state.writeLocal(id, random.nextLong(), random.nextLong()); break;
                default: state.writeRemote(id, random.nextLong(), random.nextLong()); break;
            }
        }
        return random.nextInt(4) == 0 ? CounterContext.instance().markLocalToBeCleared(state.context) : state.context;
    }
}
