import java.io.FileInputStream;
import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.*;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.state.KeyValueStore;

/** The application of test_failover.py with Kafka Streams, to compare with: FailoverWorker FILE, a file of settings. */
public class FailoverWorker {
    public static void main(String[] args) throws Exception {
        Properties settings = new Properties();
        try (FileInputStream file = new FileInputStream(args[0])) { settings.load(file); }
        String prefix = settings.getProperty("app.prefix"), worker = settings.getProperty("app.worker");
        Serde<String> text = Serdes.String();
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(prefix + "-in", Consumed.with(text, text))
            .groupByKey(Grouped.with(text, text))
            .reduce((old, row) -> row, Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as("kept")
                .withKeySerde(text).withValueSerde(text))
            .toStream().mapValues(row -> worker).to(prefix + "-out", Produced.with(text, text));
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(Duration.ofSeconds(30))));
        streams.start();
        Thread.currentThread().join();
    }
}
