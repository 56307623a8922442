import java.io.IOException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.function.LongPredicate;

import org.apache.cassandra.db.ClusteringPrefix;
import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.db.DeletionTime;
import org.apache.cassandra.db.Mutation;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.db.partitions.PurgeFunction;
import org.apache.cassandra.db.partitions.UnfilteredPartitionIterator;
import org.apache.cassandra.db.partitions.UnfilteredPartitionIterators;
import org.apache.cassandra.db.rows.BTreeRow;
import org.apache.cassandra.db.rows.BufferCell;
import org.apache.cassandra.db.rows.Cell;
import org.apache.cassandra.db.rows.CellPath;
import org.apache.cassandra.db.rows.DeserializationHelper;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.io.util.DataInputBuffer;
import org.apache.cassandra.schema.ColumnMetadata;
import org.apache.cassandra.schema.Schema;
import org.apache.cassandra.schema.TableMetadata;

/** What Cassandra 4.0 and later spell alike. */
final class Api
{
    static final boolean HAS_CF_METADATA = false;
    static final boolean HAS_SIGNED_TIMES = Integer.class.isInstance(constant("NO_DELETION_TIME"));

    /** An unsigned one from 5.0 on. */
    private static final int NO_DELETION_TIME = HAS_SIGNED_TIMES ? Integer.MAX_VALUE : -1;

    private static Object constant(String name)
    {
        try
        {
            return Cell.class.getField(name).get(null);
        }
        catch (ReflectiveOperationException error)
        {
            throw new AssertionError(error);
        }
    }

    /** 4.0 would write the schema's version into the node's commit log, unless told not to. */
    static void loadSchema() throws ReflectiveOperationException
    {
        for (Method method : Schema.class.getMethods())
        {
            if (method.getName().equals("loadFromDisk") && method.getParameterCount() == 1)
            {
                method.invoke(Schema.instance, false);
                return;
            }
        }
        Schema.instance.loadFromDisk();
    }

    static String table(PartitionUpdate update)
    {
        return update.metadata().keyspace + "." + update.metadata().name;
    }

    static ByteBuffer value(Cell<?> cell)
    {
        return cell.buffer();
    }

    static ByteBuffer value(ClusteringPrefix<?> prefix, int index)
    {
        return prefix.get(index) == null ? null : prefix.bufferAt(index);
    }

    static PartitionUpdate readUpdate(DataInputBuffer input, int version) throws IOException
    {
        return PartitionUpdate.serializer.deserialize(input, version, DeserializationHelper.Flag.LOCAL);
    }

    static Mutation readMutation(DataInputBuffer input, int version) throws IOException
    {
        return Mutation.serializer.deserialize(input, version, DeserializationHelper.Flag.LOCAL);
    }

    static TableMetadata metadata(String keyspace, String table)
    {
        return Schema.instance.getTableMetadata(keyspace, table);
    }

    static UnfilteredPartitionIterator merge(List<? extends UnfilteredPartitionIterator> sources, long now)
    {
        return UnfilteredPartitionIterators.merge(sources, null);
    }

    /** Purges all that is older than gcBefore: nothing lies outside of what is merged. 5.0 takes longs. */
    static final class Purger extends PurgeFunction
    {
        Purger(long now, long gcBefore, long oldestUnrepaired, boolean onlyRepaired)
        {
            super((int) now, (int) gcBefore, (int) oldestUnrepaired, onlyRepaired, false);
        }

        @Override
        protected LongPredicate getPurgeEvaluator()
        {
            return timestamp -> true;
        }
    }

    static DecoratedKey key(TableMetadata metadata, ByteBuffer key)
    {
        return metadata.partitioner.decorateKey(key);
    }

    static Row.Builder rowBuilder()
    {
        return BTreeRow.unsortedBuilder();
    }

    static List<Column> regulars(TableMetadata metadata)
    {
        return columns(metadata.regularColumns());
    }

    static List<Column> statics(TableMetadata metadata)
    {
        return columns(metadata.staticColumns());
    }

    private static List<Column> columns(Iterable<ColumnMetadata> columns)
    {
        List<Column> found = new ArrayList<>();
        for (ColumnMetadata column : columns)
            found.add(new Column(column));
        return found;
    }

    static final class Column
    {
        private final ColumnMetadata column;

        private Column(ColumnMetadata column)
        {
            this.column = column;
        }

        boolean isComplex()
        {
            return column.isComplex();
        }

        String type()
        {
            return column.type.asCQL3Type().toString();
        }

        /** `seconds` null: none. */
        Cell cell(long timestamp, int ttl, Long seconds, ByteBuffer value, CellPath path)
        {
            int time = seconds == null ? NO_DELETION_TIME : seconds.intValue();
            return new BufferCell(column, timestamp, ttl, time, value, path);
        }

        void addDeletion(Row.Builder builder, DeletionTime time)
        {
            builder.addComplexDeletion(column, time);
        }
    }
}
