import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.KeyValueStore;

/** The topologies of programs/topologies_by_size.py. */
final class WorkloadsBySize {
  private static final Serde<String> TEXT = Serdes.String();
  private static final Serde<Long> NUMBER = Serdes.Long();

  static void chain(StreamsBuilder builder, String source, String sink, int operators) {
    KStream<String, String> stream = builder.stream(source, Consumed.with(TEXT, TEXT));
    for (int place = 0; place < operators; place++) {
      stream = place % 2 == 1 ? stream.mapValues(line -> line) : stream.filter((key, line) -> !line.isEmpty());
    }
    stream.to(sink, Produced.with(TEXT, TEXT));
  }

  static void relay(StreamsBuilder builder, String source, String sink, int subtopologies) {
    KStream<String, String> stream = builder.stream(source, Consumed.with(TEXT, TEXT));
    Grouped<String, String> grouping = Grouped.with("by-key", TEXT, TEXT);
    KGroupedStream<String, String> grouped =
        subtopologies == 1 ? stream.groupByKey(grouping) : stream.groupBy((key, line) -> key, grouping);
    grouped
        .reduce(
            (older, newer) -> newer,
            Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as("newest")
                .withKeySerde(TEXT)
                .withValueSerde(TEXT))
        .toStream()
        .to(sink, Produced.with(TEXT, TEXT));
  }

  static void stores(StreamsBuilder builder, String source, String sink, int count) {
    Serde<Workloads.Event> events = JsonSerde.of(Workloads.Event.class);
    KGroupedStream<String, Workloads.Event> grouped =
        builder.stream(source, Consumed.with(TEXT, events)).groupByKey(Grouped.with(TEXT, events));
    for (int place = 0; place < count; place++) {
      KTable<String, Long> counts =
          grouped.count(
              Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("counts-" + place)
                  .withKeySerde(TEXT)
                  .withValueSerde(NUMBER));
      if (place == 0) {
        counts.toStream().to(sink, Produced.with(TEXT, NUMBER));
      }
    }
  }

  private WorkloadsBySize() {}
}
