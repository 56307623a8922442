import java.io.IOException;
import java.nio.ByteBuffer;

import org.apache.cassandra.db.ClusteringPrefix;
import org.apache.cassandra.db.Mutation;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.db.rows.Cell;
import org.apache.cassandra.db.rows.DeserializationHelper;
import org.apache.cassandra.io.util.DataInputBuffer;
import org.apache.cassandra.schema.Schema;

/** What Cassandra 4.0 and later spell alike. */
final class Api
{
    static final boolean HAS_SIGNED_TIMES = Integer.class.isInstance(constant("NO_DELETION_TIME"));

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

    static void loadSchema()
    {
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
}
