import org.apache.cassandra.db.DeletionTime;
import org.apache.cassandra.db.LivenessInfo;

/** Seconds as 5.0 keeps them. */
final class Times
{
    /** The last that can be a deletion time. */
    static final long MOST = (1L << 32) - 3;

    static DeletionTime deletion(long timestamp, long seconds)
    {
        return DeletionTime.build(timestamp, seconds);
    }

    static LivenessInfo liveness(long timestamp, int ttl, long seconds)
    {
        return LivenessInfo.withExpirationTime(timestamp, ttl, seconds);
    }
}
