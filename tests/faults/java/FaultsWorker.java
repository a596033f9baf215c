import java.io.FileInputStream;
import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.*;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.state.*;

/**
 * A worker of the application of application.py, with Kafka Streams: FaultsWorker FILE, a file of settings.
 *
 * It ends with 0 after SIGTERM, and has left its group then. A thread that fails is replaced, as most users have it.
 */
public class FaultsWorker {
    static final Serde<String> TEXT = Serdes.String();
    static final Serde<Long> NUMBER = Serdes.Long();

    public static void main(String[] args) throws Exception {
        Properties settings = new Properties();
        try (FileInputStream file = new FileInputStream(args[0])) { settings.load(file); }
        KafkaStreams streams = new KafkaStreams(build(settings.getProperty("application.id")), settings);
        streams.setUncaughtExceptionHandler(error -> {
            System.err.println("a thread failed, and is replaced: " + error);
            error.printStackTrace();
            return StreamThreadExceptionResponse.REPLACE_THREAD;
        });
        streams.setStateListener((now, before) -> System.err.println("state " + now));
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            boolean done = streams.close(CloseOptions.timeout(Duration.ofSeconds(50))
                .withGroupMembershipOperation(CloseOptions.GroupMembershipOperation.LEAVE_GROUP));
            Runtime.getRuntime().halt(done ? 0 : 1);
        }));
        streams.start();
        Thread.currentThread().join();
    }

    static Topology build(String application) {
        StreamsBuilder builder = new StreamsBuilder();
        Consumed<String, String> read = Consumed.with(TEXT, TEXT);
        Grouped<String, String> grouped = Grouped.with(TEXT, TEXT);
        KStream<String, String> lines = builder.stream("lines", read);
        KStream<String, String> notes = builder.stream("notes", read);

        lines.to(application + "-mapped", Produced.with(TEXT, TEXT));
        KStream<String, String> byGroup = lines.selectKey((key, line) -> line.substring(line.indexOf('|') + 1));
        byGroup.groupByKey(Grouped.with("groups", TEXT, TEXT))
            .count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("counts-store")
                .withKeySerde(TEXT).withValueSerde(NUMBER))
            .toStream().to(application + "-counts", Produced.with(TEXT, NUMBER));
        lines.groupByKey(grouped)
            .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofSeconds(10), Duration.ofDays(1)))
            .count(Materialized.<String, Long, WindowStore<Bytes, byte[]>>as("windows-store")
                .withKeySerde(TEXT).withValueSerde(NUMBER))
            .toStream((window, count) -> window.key() + "@" + window.window().start())
            .to(application + "-windows", Produced.with(TEXT, NUMBER));
        byGroup.repartition(Repartitioned.<String, String>as("moved").withKeySerde(TEXT).withValueSerde(TEXT))
            .merge(notes).groupByKey(grouped)
            .count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("merged-store")
                .withKeySerde(TEXT).withValueSerde(NUMBER))
            .toStream().to(application + "-merged", Produced.with(TEXT, NUMBER));
        return builder.build();
    }
}
