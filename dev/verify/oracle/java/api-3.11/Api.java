import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;

import org.apache.cassandra.config.CFMetaData;
import org.apache.cassandra.config.ColumnDefinition;
import org.apache.cassandra.config.Schema;
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
import org.apache.cassandra.db.rows.SerializationHelper;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.io.util.DataInputBuffer;

/** What Cassandra 3.11 spells its own way. */
final class Api
{
    static final boolean HAS_CF_METADATA = true;
    static final boolean HAS_SIGNED_TIMES = true;
    private static final int NO_DELETION_TIME = Cell.NO_DELETION_TIME;

    static void loadSchema()
    {
        Schema.instance.loadFromDisk(false);
    }

    static String table(PartitionUpdate update)
    {
        return update.metadata().ksName + "." + update.metadata().cfName;
    }

    static ByteBuffer value(Cell cell)
    {
        return cell.value();
    }

    static ByteBuffer value(ClusteringPrefix prefix, int index)
    {
        return prefix.get(index);
    }

    static PartitionUpdate readUpdate(DataInputBuffer input, int version) throws IOException
    {
        return PartitionUpdate.serializer.deserialize(input, version, SerializationHelper.Flag.LOCAL, (ByteBuffer) null);
    }

    static Mutation readMutation(DataInputBuffer input, int version) throws IOException
    {
        return Mutation.serializer.deserialize(input, version, SerializationHelper.Flag.LOCAL);
    }

    static CFMetaData metadata(String keyspace, String table)
    {
        return Schema.instance.getCFMetaData(keyspace, table);
    }

    static UnfilteredPartitionIterator merge(List<? extends UnfilteredPartitionIterator> sources, long now)
    {
        return UnfilteredPartitionIterators.merge(sources, (int) now, null);
    }

    /** Purges all that is older than gcBefore: nothing lies outside of what is merged. */
    static final class Purger extends PurgeFunction
    {
        Purger(long now, long gcBefore, long oldestUnrepaired, boolean onlyRepaired)
        {
            super(false, (int) now, (int) gcBefore, (int) oldestUnrepaired, onlyRepaired, false);
        }

        @Override
        protected Predicate<Long> getPurgeEvaluator()
        {
            return timestamp -> true;
        }
    }

    static DecoratedKey key(CFMetaData metadata, ByteBuffer key)
    {
        return metadata.decorateKey(key);
    }

    static Row.Builder rowBuilder()
    {
        return BTreeRow.unsortedBuilder(0);
    }

    static List<Column> regulars(CFMetaData metadata)
    {
        return columns(metadata.partitionColumns().regulars);
    }

    static List<Column> statics(CFMetaData metadata)
    {
        return columns(metadata.partitionColumns().statics);
    }

    private static List<Column> columns(Iterable<ColumnDefinition> columns)
    {
        List<Column> found = new ArrayList<>();
        for (ColumnDefinition column : columns)
            found.add(new Column(column));
        return found;
    }

    static final class Column
    {
        private final ColumnDefinition column;

        private Column(ColumnDefinition column)
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
