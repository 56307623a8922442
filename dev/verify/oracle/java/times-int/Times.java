import org.apache.cassandra.db.DeletionTime;
import org.apache.cassandra.db.LivenessInfo;

/** Seconds as 3.11 to 4.1 keep them. */
final class Times
{
    /** The last that can be a deletion time. */
    static final long MOST = Integer.MAX_VALUE - 1L;

    static DeletionTime deletion(long timestamp, long seconds)
    {
        return new DeletionTime(timestamp, (int) seconds);
    }

    static LivenessInfo liveness(long timestamp, int ttl, long seconds)
    {
        return LivenessInfo.withExpirationTime(timestamp, ttl, (int) seconds);
    }
}
