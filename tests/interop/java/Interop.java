import java.io.*;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.serialization.*;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.processor.api.*;
import org.apache.kafka.streams.state.*;

/**
 * Hosts Kafka Streams applications: commands on stdin, what happens on stdout; fields are parted by tabs.
 *
 * start NAME APP KEY=VALUE...      says NAME STATE RUNNING and the like, or NAME FAILED why
 * stop NAME leave|remain           says NAME STOPPED true|false
 * offsets NAME BROKERS GROUP       says NAME OFFSETS, and for each partition: topic partition offset metadata-as-hex
 *
 * The topologies are those of applications.py, which says what each one has.
 */
public class Interop {
    static final Serde<String> S = Serdes.String();
    static final Serde<Long> L = Serdes.Long();
    static final long HOUR = 3_600_000L;
    static final Map<String, KafkaStreams> running = new ConcurrentHashMap<>();
    static final PrintStream out = System.out;

    static void say(String... parts) {
        synchronized (out) { out.println(String.join("\t", parts)); out.flush(); }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        ExecutorService pool = Executors.newCachedThreadPool();
        say("-", "READY");
        String line;
        while ((line = in.readLine()) != null) {
            String[] p = line.split("\t");
            if (p[0].equals("start")) pool.submit(() -> start(p));
            else if (p[0].equals("stop")) pool.submit(() -> stop(p[1], p[2]));
            else if (p[0].equals("offsets")) pool.submit(() -> offsets(p[1], p[2], p[3]));
        }
        Runtime.getRuntime().halt(0);
    }

    static void start(String[] p) {
        String id = p[1];
        try {
            Properties props = new Properties();
            for (int i = 3; i < p.length; i++) { String[] kv = p[i].split("=", 2); props.put(kv[0], kv[1]); }
            KafkaStreams streams = new KafkaStreams(build(p[2], props), props);
            streams.setStateListener((now, before) -> say(id, "STATE", now.name()));
            streams.setUncaughtExceptionHandler(e -> {
                StringBuilder text = new StringBuilder();
                for (Throwable t = e; t != null; t = t.getCause()) text.append(t).append(" <- ");
                if (text.indexOf(POISON) >= 0) return StreamThreadExceptionResponse.SHUTDOWN_APPLICATION;
                say(id, "FAILED", text.toString().replaceAll("\\s+", " "));
                return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
            });
            running.put(id, streams);
            streams.start();
        } catch (Throwable e) {
            say(id, "FAILED", ("start: " + e + " " + e.getCause()).replaceAll("\\s+", " "));
        }
    }

    /** What a group has committed, as Java reads it: topic, partition, offset, metadata as hex of its UTF-8. */
    static void offsets(String id, String brokers, String group) {
        try (var admin = Admin.create(Map.of("bootstrap.servers", (Object) brokers))) {
            List<String> all = new ArrayList<>();
            all.add("OFFSETS");
            admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().forEach((p, o) -> {
                all.add(p.topic() + " " + p.partition() + " " + o.offset() + " "
                    + HexFormat.of().formatHex(o.metadata().getBytes(StandardCharsets.UTF_8)));
            });
            say(Stream.concat(Stream.of(id), all.stream()));
        } catch (Throwable e) {
            say(id, "FAILED", ("offsets: " + e).replaceAll("\\s+", " "));
        }
    }

    static void say(Stream<String> parts) { say(parts.toArray(String[]::new)); }

    static void stop(String id, String how) {
        try {
            KafkaStreams streams = running.remove(id);
            boolean done;
            if (how.equals("leave")) {
                done = streams.close(CloseOptions.timeout(Duration.ofSeconds(120))
                    .withGroupMembershipOperation(CloseOptions.GroupMembershipOperation.LEAVE_GROUP));
            } else {
                done = streams.close(Duration.ofSeconds(120));
            }
            say(id, "STOPPED", String.valueOf(done));
        } catch (Throwable e) {
            say(id, "FAILED", ("stop: " + e).replaceAll("\\s+", " "));
        }
    }

    static String text(Windowed<String> w) { return w.key() + "@" + w.window().start() % HOUR; }
    static String session(Windowed<String> w) { return w.key() + "@" + w.window().start() % HOUR + "-" + w.window().end() % HOUR; }
    static String pair(String a, String b) { return a + "+" + b; }
    static final String POISON = "poison-for-java";

    static String head(String v) {
        if (v.equals(POISON)) throw new IllegalArgumentException(POISON);
        return v.split(" ")[0];
    }
    static Duration ms(long n) { return Duration.ofMillis(n); }

    static Topology build(String app, Properties props) {
        StreamsBuilder b = new StreamsBuilder();
        String x = props.getProperty("app.prefix");
        Consumed<String, String> read = Consumed.with(S, S);
        Produced<String, String> write = Produced.with(S, S);
        Produced<String, Long> writeL = Produced.with(S, L);
        Grouped<String, String> grouped = Grouped.with(S, S);
        TimeWindows tumbling = TimeWindows.ofSizeAndGrace(ms(100), ms(50));
        switch (app) {
            case "count":
                b.stream(x + "in", read).groupBy((k, v) -> head(v), grouped).count().toStream().to(x + "out", writeL);
                break;
            case "counts_of_three_partitions":
                b.stream(x + "in", read).groupBy((k, v) -> head(v), Grouped.with("by-word", S, S))
                    .count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("counts").withKeySerde(S).withValueSerde(L))
                    .toStream().to(x + "out", writeL);
                break;
            case "aggregate":
                b.stream(x + "in", read).groupBy((k, v) -> head(v), grouped)
                    .aggregate(() -> "", (k, v, a) -> a.length() > 60 ? v : a + "|" + v, Materialized.with(S, S))
                    .toStream().to(x + "out", write);
                break;
            case "suppressed_windows":
                b.stream(x + "in", read).groupByKey(grouped).windowedBy(tumbling).count(Materialized.with(S, L))
                    .suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()))
                    .toStream((w, v) -> text(w)).to(x + "out", writeL);
                break;
            case "suppress_until_time_limit":
                b.stream(x + "in", read).groupByKey(grouped).count(Materialized.with(S, L))
                    .suppress(Suppressed.untilTimeLimit(ms(80), Suppressed.BufferConfig.maxRecords(3).emitEarlyWhenFull()).withName("limit"))
                    .toStream().to(x + "out", writeL);
                break;
            case "emit_on_window_close":
                b.stream(x + "in", read).groupByKey(grouped).windowedBy(TimeWindows.ofSizeAndGrace(ms(100), ms(50)).advanceBy(ms(50)))
                    .emitStrategy(EmitStrategy.onWindowClose()).count()
                    .toStream((w, v) -> text(w)).to(x + "out", writeL);
                break;
            case "left_stream_join":
                b.stream(x + "left", read).leftJoin(b.stream(x + "right", read), Interop::pair,
                    JoinWindows.ofTimeDifferenceAndGrace(ms(50), ms(30)), StreamJoined.with(S, S, S)).to(x + "out", write);
                break;
            case "outer_stream_join":
                b.stream(x + "left", read).outerJoin(b.stream(x + "right", read), Interop::pair,
                    JoinWindows.ofTimeDifferenceAndGrace(ms(50), ms(30)), StreamJoined.with(S, S, S).withName("oj").withStoreName("ojs")).to(x + "out", write);
                break;
            case "left_foreign_key_join":
                b.table(x + "left", read).leftJoin(b.table(x + "right", read), Interop::fk, Interop::pair)
                    .toStream().to(x + "out", write);
                break;
            case "inner_foreign_key_join":
                b.table(x + "left", read).join(b.table(x + "right", read), Interop::fk, Interop::pair, TableJoined.as("fk"),
                        Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as("joined").withKeySerde(S).withValueSerde(S))
                    .toStream().to(x + "out", write);
                break;
            case "versioned_table_with_grace": {
                KTable<String, String> prices = b.table(x + "right", read,
                    Materialized.as(Stores.persistentVersionedKeyValueStore("prices", ms(300))));
                b.stream(x + "left", read).leftJoin(prices, Interop::pair, Joined.with(S, S, S, "pj", ms(50))).to(x + "out", write);
                break;
            }
            case "versioned_table": {
                KTable<String, String> prices = b.table(x + "right", read,
                    Materialized.as(Stores.persistentVersionedKeyValueStore("prices", ms(300))));
                prices.toStream().to(x + "out2", write);
                b.stream(x + "left", read).leftJoin(prices, Interop::pair, Joined.with(S, S, S)).to(x + "out", write);
                break;
            }
            case "sessions":
                b.stream(x + "in", read).groupByKey(grouped).windowedBy(SessionWindows.ofInactivityGapAndGrace(ms(40), ms(60)))
                    .aggregate(() -> "", (k, v, a) -> a + "|" + v, (k, a, c) -> a + "&" + c, Materialized.with(S, S))
                    .toStream((w, v) -> session(w)).to(x + "out", write);
                break;
            case "table_aggregate":
                b.table(x + "in", read).groupBy((k, v) -> KeyValue.pair(head(v), v), grouped)
                    .aggregate(() -> "", (k, v, a) -> a + "+" + v.length(), (k, v, a) -> a + "-" + v.length(), Materialized.with(S, S))
                    .toStream().to(x + "out", write);
                break;
            case "cogroup": {
                KGroupedStream<String, String> one = b.stream(x + "left", read).groupByKey(grouped);
                KGroupedStream<String, String> two = b.stream(x + "right", read).groupBy((k, v) -> head(v), grouped);
                one.<String>cogroup((k, v, a) -> a + "l" + v.length()).cogroup(two, (k, v, a) -> a + "r" + v.length())
                    .aggregate(() -> "", Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as("both").withKeySerde(S).withValueSerde(S))
                    .toStream().to(x + "out", write);
                break;
            }
            case "stores_in_memory": {
                KGroupedStream<String, String> g = b.stream(x + "in", read).groupByKey(grouped);
                g.count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>with(S, L).withStoreType(BuiltInDslStoreSuppliers.IN_MEMORY)).toStream().to(x + "out", writeL);
                g.windowedBy(tumbling).count(Materialized.<String, Long, WindowStore<Bytes, byte[]>>with(S, L).withStoreType(BuiltInDslStoreSuppliers.IN_MEMORY))
                    .toStream((w, v) -> text(w)).to(x + "out2", writeL);
                break;
            }
            case "sliding_windows":
                b.stream(x + "in", read).groupByKey(grouped).windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(ms(40), ms(60)))
                    .count(Materialized.with(S, L)).toStream((w, v) -> session(w)).to(x + "out", writeL);
                break;
            case "table_joins": {
                KTable<String, String> one = b.table(x + "left", read);
                KTable<String, String> two = b.table(x + "right", read, Materialized.as("two"));
                one.outerJoin(two, Interop::pair).toStream().to(x + "out", write);
                b.stream(x + "in", read).leftJoin(two, Interop::pair).to(x + "out2", write);
                break;
            }
            case "shared_repartition": {
                KStream<String, String> keyed = b.stream(x + "in", read).selectKey((k, v) -> head(v));
                keyed.groupByKey(grouped).count(Materialized.with(S, L)).toStream().to(x + "out", writeL);
                keyed.groupByKey(grouped).reduce((a, v) -> v + "<" + head(a), Materialized.with(S, S)).toStream().to(x + "out2", write);
                KTable<String, String> table = b.table(x + "right", read);
                KStream<String, String> left = b.stream(x + "left", read);
                left.join(table, Interop::pair).to(x + "out3", write);
                left.join(left, Interop::pair, JoinWindows.ofTimeDifferenceAndGrace(ms(50), ms(30)), StreamJoined.with(S, S, S)).to(x + "out4", write);
                break;
            }
            case "own_stores": {
                b.addStateStore(Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore("my-own.store"), S, L));
                b.addStateStore(Stores.windowStoreBuilder(Stores.persistentWindowStore("my_windows", ms(400), ms(100), false), S, S));
                b.stream(x + "in", read).process(Own::new, "my-own.store", "my_windows").to(x + "out", write);
                break;
            }
            default: throw new IllegalArgumentException(app);
        }
        return b.build(props);
    }

    static String fk(String v) { return v == null || v.startsWith("-") ? null : head(v); }

    static class Own implements Processor<String, String, String, String> {
        KeyValueStore<String, Long> seen;
        WindowStore<String, String> windows;
        ProcessorContext<String, String> context;
        public void init(ProcessorContext<String, String> context) {
            this.context = context;
            seen = context.getStateStore("my-own.store");
            windows = context.getStateStore("my_windows");
        }
        public void process(org.apache.kafka.streams.processor.api.Record<String, String> r) {
            if (r.key() == null) return;
            if (r.value() == null) { seen.delete(r.key()); context.forward(r.withValue("gone")); return; }
            Long n = seen.get(r.key());
            seen.put(r.key(), n == null ? 1L : n + 1);
            long start = r.timestamp() / 100 * 100;
            String before = windows.fetch(r.key(), start);
            windows.put(r.key(), (before == null ? "" : before) + "." + r.value().length(), start);
            StringBuilder all = new StringBuilder();
            try (WindowStoreIterator<String> i = windows.fetch(r.key(), r.timestamp() - 250, r.timestamp())) {
                while (i.hasNext()) { KeyValue<Long, String> kv = i.next(); all.append(kv.key % HOUR).append(kv.value).append(';'); }
            }
            context.forward(r.withValue(seen.get(r.key()) + ":" + all));
        }
    }
}
