import java.nio.ByteBuffer;
import java.util.Iterator;

import org.apache.cassandra.db.ClusteringPrefix;
import org.apache.cassandra.db.DeletionTime;
import org.apache.cassandra.db.LivenessInfo;
import org.apache.cassandra.db.Mutation;
import org.apache.cassandra.db.RangeTombstone;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.db.rows.Cell;
import org.apache.cassandra.db.rows.ColumnData;
import org.apache.cassandra.db.rows.ComplexColumnData;
import org.apache.cassandra.db.rows.RangeTombstoneMarker;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.db.rows.Unfiltered;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;

/**
 * Updates as compact JSON, the same text for the same content in every version: names of fields and of bounds' kinds
 * are Cassandra's, bytes are hex, an int's "no deletion time" is a long's.
 */
final class Description
{
    private final StringBuilder text = new StringBuilder();

    @Override
    public String toString()
    {
        return text.toString();
    }

    Description add(String verbatim)
    {
        text.append(verbatim);
        return this;
    }

    Description updates(Mutation mutation)
    {
        text.append("[");
        String separator = "";
        for (PartitionUpdate update : mutation.getPartitionUpdates())
        {
            text.append(separator);
            update(update);
            separator = ",";
        }
        return add("]");
    }

    Description update(PartitionUpdate update)
    {
        text.append("{\"table\":");
        quoted(Api.table(update));
        text.append(",\"key\":");
        bytes(update.partitionKey().getKey());
        text.append(",\"deletion\":");
        deletion(update.partitionLevelDeletion());
        text.append(",\"static\":");
        if (update.staticRow().isEmpty())
            text.append("null");
        else
            row(update.staticRow());
        text.append(",\"rows\":[");
        String separator = "";
        for (Row row : update)
        {
            text.append(separator);
            row(row);
            separator = ",";
        }
        text.append("],\"ranges\":[");
        ranges(update.deletionInfo().rangeIterator(false));
        return add("]}");
    }

    /** A partition of an SSTable before its rows. */
    Description partition(UnfilteredRowIterator partition)
    {
        text.append("{\"key\":");
        bytes(partition.partitionKey().getKey());
        text.append(",\"deletion\":");
        deletion(partition.partitionLevelDeletion());
        text.append(",\"static\":");
        if (partition.staticRow().isEmpty())
            text.append("null");
        else
            row(partition.staticRow());
        return add("}");
    }

    Description unfiltered(Unfiltered unfiltered)
    {
        if (unfiltered.isRow())
        {
            text.append("{\"row\":");
            row((Row) unfiltered);
            return add("}");
        }
        RangeTombstoneMarker marker = (RangeTombstoneMarker) unfiltered;
        text.append("{\"marker\":[");
        if (marker.isClose(false))
            end(marker.closeBound(false), marker.closeDeletionTime(false));
        else
            text.append("null");
        text.append(",");
        if (marker.isOpen(false))
            end(marker.openBound(false), marker.openDeletionTime(false));
        else
            text.append("null");
        return add("]}");
    }

    private void end(ClusteringPrefix bound, DeletionTime deletion)
    {
        text.append("[");
        bound(bound);
        text.append(",");
        deletion(deletion);
        text.append("]");
    }

    private void ranges(Iterator<RangeTombstone> tombstones)
    {
        String separator = "";
        while (tombstones.hasNext())
        {
            RangeTombstone range = tombstones.next();
            text.append(separator).append("[");
            bound(range.deletedSlice().start());
            text.append(",");
            bound(range.deletedSlice().end());
            text.append(",");
            deletion(range.deletionTime());
            text.append("]");
            separator = ",";
        }
    }

    private void bound(ClusteringPrefix prefix)
    {
        text.append("[\"").append(prefix.kind().name()).append("\",");
        values(prefix);
        text.append("]");
    }

    private void row(Row row)
    {
        text.append("{\"clustering\":");
        if (row.isStatic())
            text.append("[]");
        else
            values(row.clustering());
        LivenessInfo liveness = row.primaryKeyLivenessInfo();
        text.append(",\"liveness\":[").append(liveness.timestamp()).append(",").append(liveness.ttl()).append(",");
        time(liveness.localExpirationTime());
        text.append("],\"deletion\":[");
        deletion(row.deletion().time());
        text.append(",").append(row.deletion().isShadowable()).append("],\"columns\":{");
        String separator = "";
        for (ColumnData data : row)
        {
            text.append(separator);
            quoted(data.column().name.toString());
            text.append(":");
            if (data.column().isSimple())
                cell((Cell) data);
            else
                complex((ComplexColumnData) data);
            separator = ",";
        }
        text.append("}}");
    }

    private void complex(ComplexColumnData data)
    {
        text.append("[");
        deletion(data.complexDeletion());
        text.append(",[");
        String separator = "";
        for (Cell cell : data)
        {
            text.append(separator);
            cell(cell);
            separator = ",";
        }
        text.append("]]");
    }

    private void cell(Cell cell)
    {
        text.append("[").append(cell.timestamp()).append(",");
        bytes(Api.value(cell));
        text.append(",");
        time(cell.localDeletionTime());
        text.append(",").append(cell.ttl()).append(",");
        bytes(cell.path() == null ? null : cell.path().get(0));
        text.append("]");
    }

    private void deletion(DeletionTime time)
    {
        text.append("[").append(time.markedForDeleteAt()).append(",");
        time(time.localDeletionTime());
        text.append("]");
    }

    private void time(long seconds)
    {
        text.append(Api.HAS_SIGNED_TIMES && seconds == Integer.MAX_VALUE ? Long.MAX_VALUE : seconds);
    }

    private void values(ClusteringPrefix prefix)
    {
        text.append("[");
        for (int i = 0; i < prefix.size(); i++)
        {
            text.append(i == 0 ? "" : ",");
            bytes(Api.value(prefix, i));
        }
        text.append("]");
    }

    private void quoted(String name)
    {
        text.append('"');
        for (char c : name.toCharArray())
            if (c < 0x20 || c > 0x7e || c == '"' || c == '\\')
                text.append(c == '"' || c == '\\' ? "\\" + c : String.format("\\u%04x", (int) c));
            else
                text.append(c);
        text.append('"');
    }

    private void bytes(ByteBuffer value)
    {
        if (value == null)
        {
            text.append("null");
            return;
        }
        text.append('"');
        for (int i = value.position(); i < value.limit(); i++)
        {
            int octet = value.get(i) & 0xff;
            text.append(Character.forDigit(octet >> 4, 16)).append(Character.forDigit(octet & 15, 16));
        }
        text.append('"');
    }
}
