import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.db.Mutation;
import org.apache.cassandra.db.commitlog.CommitLogDescriptor;
import org.apache.cassandra.db.commitlog.CommitLogReadHandler;
import org.apache.cassandra.db.commitlog.CommitLogReader;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.schema.Schema;
import org.apache.cassandra.schema.SchemaKeyspace;

/**
 * Reads all segments of a folder with Cassandra's own CommitLogReader and prints how many mutations of a keyspace it
 * found. It decodes them and does nothing else: no splitting, no Kafka. The schema is that of the node whose
 * cassandra.yaml -Dcassandra.config names.
 */
public final class ReadSegments
{
    public static void main(String[] arguments) throws Exception
    {
        DatabaseDescriptor.toolInitialization();
        Schema.instance.loadFromDisk();
        Counter counter = new Counter(arguments[1]);
        CommitLogReader reader = new CommitLogReader();
        try (Stream<Path> files = Files.list(Paths.get(arguments[0])))
        {
            List<Path> segments = files.filter(path -> path.toString().endsWith(".log")).sorted().collect(Collectors.toList());
            for (Path segment : segments)
                reader.readCommitLogSegment(counter, new org.apache.cassandra.io.util.File(segment), false);
        }
        System.out.println("read " + counter.mutations);
        System.exit(0);
    }

    private static final class Counter implements CommitLogReadHandler
    {
        private final String keyspace;
        private long mutations;

        private Counter(String keyspace)
        {
            this.keyspace = keyspace;
        }

        @Override
        public boolean shouldSkipSegmentOnError(CommitLogReadException exception) throws IOException
        {
            throw exception;
        }

        @Override
        public void handleUnrecoverableError(CommitLogReadException exception) throws IOException
        {
            throw exception;
        }

        @Override
        public void handleMutation(Mutation mutation, int size, int location, CommitLogDescriptor descriptor)
        {
            if (mutation.getKeyspaceName().equals(keyspace))
                mutations++;
        }
    }
}
