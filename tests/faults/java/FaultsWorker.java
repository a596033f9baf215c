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
 * A worker of one of the programs with Kafka Streams, counting_application.py or joining_application.py: FaultsWorker
 * FILE PROGRAM, a file of settings and "counting" or "joining".
 *
 * It ends with 0 after SIGTERM, and has left its group then. A thread that fails is replaced, as most users have it.
 */
public class FaultsWorker {
    static final Serde<String> TEXT = Serdes.String();
    static final Serde<Long> NUMBER = Serdes.Long();

    public static void main(String[] args) throws Exception {
        Properties settings = new Properties();
        try (FileInputStream file = new FileInputStream(args[0])) { settings.load(file); }
        String application = settings.getProperty("application.id");
        KafkaStreams streams =
            new KafkaStreams(args[1].equals("joining") ? joining(application) : counting(application), settings);
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

    static String checked(String line) {
        if (line.startsWith("poison")) throw new IllegalArgumentException("a poisoned line: " + line);
        return line;
    }

    static Topology counting(String application) {
        StreamsBuilder builder = new StreamsBuilder();
        Grouped<String, String> grouped = Grouped.with(TEXT, TEXT);
        KStream<String, String> lines =
            builder.stream("lines", Consumed.with(TEXT, TEXT)).mapValues(FaultsWorker::checked);
        KStream<String, String> notes =
            builder.stream("notes", Consumed.with(TEXT, NUMBER)).mapValues(number -> number.toString());

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

    static String together(Object left, Object right) {
        return (left == null ? "None" : left) + "+" + (right == null ? "None" : right);
    }

    static Topology joining(String application) {
        StreamsBuilder builder = new StreamsBuilder();
        Duration near = Duration.ofMillis(400), grace = Duration.ofSeconds(120), history = grace.multipliedBy(4);
        Consumed<String, String> read = Consumed.with(TEXT, TEXT);
        Produced<String, String> written = Produced.with(TEXT, TEXT);
        KStream<String, String> lines = builder.stream("lines", read).mapValues(FaultsWorker::checked);

        lines.<String, String>outerJoin(builder.stream("answers", read), FaultsWorker::together,
                JoinWindows.ofTimeDifferenceAndGrace(near, grace),
                StreamJoined.with(TEXT, TEXT, TEXT).withName("pairs").withStoreName("pairs"))
            .to(application + "-pairs", written);

        KTable<String, Long> notes = builder.table("notes", Consumed.with(TEXT, NUMBER),
            Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("notes-store"));
        KTable<String, String> last = lines.toTable(
            Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as("lines-store")
                .withKeySerde(TEXT).withValueSerde(TEXT));
        last.<String, String, Long>join(notes, line -> line.substring(line.indexOf('|') + 1),
                (line, note) -> together(line, note), TableJoined.as("link"),
                Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as("linked-store")
                    .withKeySerde(TEXT).withValueSerde(TEXT))
            .toStream().to(application + "-linked", written);

        KTable<String, String> rates = builder.table("rates", read,
            Materialized.as(Stores.persistentVersionedKeyValueStore("rated-store", history)));
        lines.<String, String>leftJoin(rates, (line, rate) -> together(line, rate),
                Joined.<String, String, String>as("rated").withKeySerde(TEXT).withValueSerde(TEXT)
                    .withGracePeriod(grace))
            .to(application + "-rated", written);
        return builder.build();
    }
}
