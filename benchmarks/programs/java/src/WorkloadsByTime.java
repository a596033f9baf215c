import java.time.Duration;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.Suppressed.BufferConfig;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.WindowedSerdes;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowStore;

/** The workloads of programs/topologies_by_time.py. */
final class WorkloadsByTime {
  private static final Serde<String> TEXT = Serdes.String();
  private static final Serde<Long> NUMBER = Serdes.Long();
  private static final Duration GRACE = Duration.ofHours(1);
  private static final Duration SPAN = Duration.ofSeconds(20);

  static void countInSessions(StreamsBuilder builder, String source, String sink) {
    grouped(builder, source)
        .windowedBy(SessionWindows.ofInactivityGapAndGrace(SPAN, GRACE))
        .count(
            Materialized.<String, Long, SessionStore<Bytes, byte[]>>as("counts")
                .withKeySerde(TEXT)
                .withValueSerde(NUMBER))
        .toStream()
        .to(sink, Produced.with(WindowedSerdes.sessionWindowedSerdeFrom(String.class), NUMBER));
  }

  static void countInSlidingWindows(StreamsBuilder builder, String source, String sink) {
    KTable<Windowed<String>, Long> counts =
        grouped(builder, source)
            .windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(SPAN, GRACE))
            .count(counts());
    writeWindows(counts, sink, SPAN);
  }

  static void countUntilClosed(StreamsBuilder builder, String source, String sink) {
    Duration minute = Duration.ofMinutes(1);
    KTable<Windowed<String>, Long> counts =
        grouped(builder, source)
            .windowedBy(TimeWindows.ofSizeWithNoGrace(minute))
            .count(counts())
            .suppress(Suppressed.untilWindowCloses(BufferConfig.unbounded()));
    writeWindows(counts, sink, minute);
  }

  static void joinStreams(StreamsBuilder builder, String source, String sink) {
    Serde<Workloads.Event> events = JsonSerde.of(Workloads.Event.class);
    Consumed<String, Workloads.Event> read = Consumed.with(TEXT, events);
    builder.stream(source + "-1", read)
        .join(
            builder.stream(source + "-2", read),
            (event, other) -> {
              event.amount += other.amount;
              return event;
            },
            JoinWindows.ofTimeDifferenceAndGrace(SPAN, GRACE),
            StreamJoined.with(TEXT, events, events).withStoreName("near"))
        .to(sink, Produced.with(TEXT, events));
  }

  static void joinVersions(StreamsBuilder builder, String source, String sink) {
    Serde<Workloads.Event> events = JsonSerde.of(Workloads.Event.class);
    KTable<String, Workloads.Customer> customers =
        builder.table(
            source + "-table",
            Consumed.with(TEXT, JsonSerde.of(Workloads.Customer.class)),
            Materialized.as(Stores.persistentVersionedKeyValueStore("customers", GRACE)));
    builder.stream(source, Consumed.with(TEXT, events))
        .join(
            customers,
            (event, customer) -> {
              event.note = customer.name;
              return event;
            },
            Joined.with(TEXT, events, null))
        .to(sink, Produced.with(TEXT, events));
  }

  private static KGroupedStream<String, Workloads.Event> grouped(StreamsBuilder builder, String source) {
    Serde<Workloads.Event> events = JsonSerde.of(Workloads.Event.class);
    return builder.stream(source, Consumed.with(TEXT, events)).groupByKey(Grouped.with(TEXT, events));
  }

  private static Materialized<String, Long, WindowStore<Bytes, byte[]>> counts() {
    return Materialized.<String, Long, WindowStore<Bytes, byte[]>>as("counts")
        .withKeySerde(TEXT)
        .withValueSerde(NUMBER);
  }

  private static void writeWindows(KTable<Windowed<String>, Long> counts, String sink, Duration size) {
    counts
        .toStream()
        .to(
            sink,
            Produced.with(WindowedSerdes.timeWindowedSerdeFrom(String.class, size.toMillis()), NUMBER));
  }

  private WorkloadsByTime() {}
}
