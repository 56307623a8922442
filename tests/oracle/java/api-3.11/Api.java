import java.io.IOException;
import java.nio.ByteBuffer;

import org.apache.cassandra.config.Schema;
import org.apache.cassandra.db.ClusteringPrefix;
import org.apache.cassandra.db.Mutation;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.db.rows.Cell;
import org.apache.cassandra.db.rows.SerializationHelper;
import org.apache.cassandra.io.util.DataInputBuffer;

/** What Cassandra 3.11 spells its own way. */
final class Api
{
    static final boolean HAS_SIGNED_TIMES = true;

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
}
