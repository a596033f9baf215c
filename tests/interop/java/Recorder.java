package org.apache.kafka.streams.processor.internals;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import java.util.function.Consumer;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.ApplicationState;
import org.apache.kafka.streams.processor.assignment.AssignmentConfigs;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsAssignment;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsAssignment.AssignedTask;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsState;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.assignment.TaskAssignmentUtils;
import org.apache.kafka.streams.processor.assignment.TaskAssignmentUtils.RackAwareOptimizationParams;
import org.apache.kafka.streams.processor.assignment.TaskAssignor.TaskAssignment;
import org.apache.kafka.streams.processor.assignment.TaskInfo;
import org.apache.kafka.streams.processor.assignment.TaskTopicPartition;
import org.apache.kafka.streams.processor.assignment.assignors.StickyTaskAssignor;
import org.apache.kafka.streams.processor.internals.StreamsPartitionAssignor.ClientMetadata;
import org.apache.kafka.streams.processor.internals.TopologyMetadata.Subtopology;
import org.apache.kafka.streams.processor.internals.assignment.AssignmentInfo;
import org.apache.kafka.streams.processor.internals.assignment.AssignorConfiguration;
import org.apache.kafka.streams.processor.internals.assignment.ClientState;
import org.apache.kafka.streams.processor.internals.assignment.DefaultApplicationState;
import org.apache.kafka.streams.processor.internals.assignment.FallbackPriorTaskAssignor;
import org.apache.kafka.streams.processor.internals.assignment.HighAvailabilityTaskAssignor;
import org.apache.kafka.streams.processor.internals.assignment.LegacyStickyTaskAssignor;
import org.apache.kafka.streams.processor.internals.assignment.LegacyTaskAssignor;
import org.apache.kafka.streams.processor.internals.assignment.RackAwareTaskAssignor;
import org.apache.kafka.streams.processor.internals.assignment.SubscriptionInfo;
import org.apache.kafka.streams.state.HostInfo;
import org.slf4j.LoggerFactory;

/**
 * Asks the classes of Kafka Streams what they write and how they share out tasks: a JSON question a line, a JSON answer
 * a line. It is in their package because they are not public.
 */
public final class Recorder {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(final String[] args) throws Exception {
        final PrintStream answers = System.out;
        final BufferedReader questions = new BufferedReader(new InputStreamReader(System.in));
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            final JsonNode question = JSON.readTree(line);
            final ObjectNode answer = JSON.createObjectNode();
            switch (question.get("ask").asText()) {
                case "subscription" -> answer.put("bytes", hex(subscription(question).encode()));
                case "assignment" -> answer.put("bytes", hex(assignment(question).encode()));
                case "group" -> group(question, answer);
                case "assignors" -> assignors(question, answer);
                default -> throw new IllegalArgumentException(line);
            }
            answers.println(JSON.writeValueAsString(answer));
        }
    }

    private static SubscriptionInfo subscription(final JsonNode said) {
        final Map<TaskId, Long> sums = new TreeMap<>();
        said.get("sums").fields().forEachRemaining(e -> sums.put(TaskId.parse(e.getKey()), e.getValue().asLong()));
        final Map<String, String> tags = new TreeMap<>();
        said.get("tags").fields().forEachRemaining(e -> tags.put(e.getKey(), e.getValue().asText()));
        final JsonNode endpoint = said.get("endpoint");
        return new SubscriptionInfo(
            said.get("version").asInt(), said.get("latest").asInt(), process(said.get("process").asText()),
            endpoint.isNull() ? null : endpoint.asText(), sums, (byte) said.get("unique").asInt(), said.get("error").asInt(), tags);
    }

    private static AssignmentInfo assignment(final JsonNode said) {
        final List<TaskId> active = new ArrayList<>();
        said.get("active").forEach(task -> active.add(TaskId.parse(task.asText())));
        final Map<TaskId, Set<TopicPartition>> standby = new TreeMap<>();
        said.get("standby").fields().forEachRemaining(e -> standby.put(TaskId.parse(e.getKey()), partitions(e.getValue())));
        final AssignmentInfo info = new AssignmentInfo(
            said.get("version").asInt(), said.get("common").asInt(), active, standby,
            hosts(said.get("hosts")), hosts(said.get("standbyHosts")), said.get("error").asInt());
        if (!said.get("next").isNull()) {
            info.setNextRebalanceTime(said.get("next").asLong());
        }
        return info;
    }

    private static Map<HostInfo, Set<TopicPartition>> hosts(final JsonNode said) {
        final Map<HostInfo, Set<TopicPartition>> hosts = new LinkedHashMap<>();
        said.forEach(e -> hosts.put(new HostInfo(e.get(0).asText(), e.get(1).asInt()), partitions(e.get(2))));
        return hosts;
    }

    private static Set<TopicPartition> partitions(final JsonNode said) {
        final Set<TopicPartition> partitions = new LinkedHashSet<>();
        said.forEach(e -> partitions.add(new TopicPartition(e.get(0).asText(), e.get(1).asInt())));
        return partitions;
    }

    /** Shares out the tasks of a group among its clients, and among the consumers of each. */
    private static void group(final JsonNode said, final ObjectNode answer) {
        final Map<TaskId, Set<TopicPartition>> inputs = new HashMap<>();
        final Map<TaskId, Set<TopicPartition>> changelogs = new HashMap<>();
        final Map<Subtopology, Set<TaskId>> bySubtopology = new HashMap<>();
        final Map<String, List<TopicPartitionInfo>> described = new HashMap<>();
        final List<PartitionInfo> existing = new ArrayList<>();
        final Set<TaskId> stateful = new HashSet<>();
        said.get("tasks").fields().forEachRemaining(e -> {
            final TaskId task = TaskId.parse(e.getKey());
            bySubtopology.computeIfAbsent(new Subtopology(task.subtopology(), null), k -> new HashSet<>()).add(task);
            final Set<TopicPartition> sources = new HashSet<>();
            inputs.put(task, sources);
            for (final JsonNode racks : e.getValue().get(0)) {
                final TopicPartition place = new TopicPartition("in-" + task.subtopology() + "-" + sources.size(), task.partition());
                sources.add(place);
                final Node[] nodes = nodes(racks);
                existing.add(new PartitionInfo(place.topic(), place.partition(), null, nodes, nodes));
            }
            final Set<TopicPartition> logs = new HashSet<>();
            changelogs.put(task, logs);
            for (final JsonNode racks : e.getValue().get(1)) {
                final TopicPartition place = new TopicPartition("log-" + task.subtopology() + "-" + logs.size(), task.partition());
                logs.add(place);
                final List<Node> nodes = List.of(nodes(racks));
                described.computeIfAbsent(place.topic(), k -> new ArrayList<>())
                    .add(new TopicPartitionInfo(place.partition(), nodes.get(0), nodes, nodes));
            }
            if (!logs.isEmpty()) {
                stateful.add(task);
            }
        });
        final AssignmentConfigs configs = configs(said.get("settings"));
        final Map<ProcessId, Map<String, Optional<String>>> racks = new HashMap<>();
        final Map<ProcessId, TreeSet<String>> consumers = new TreeMap<>();
        said.get("clients").forEach(client -> client.get("consumers").fieldNames().forEachRemaining(consumer -> {
            final ProcessId process = process(client.get("process").asText());
            consumers.computeIfAbsent(process, k -> new TreeSet<>()).add(consumer);
            racks.computeIfAbsent(process, k -> new HashMap<>()).put(
                consumer, rack(client));
        }));
        final InternalTopicManager topics = new InternalTopicManager(Time.SYSTEM, null, new StreamsConfig(Map.of(
            StreamsConfig.APPLICATION_ID_CONFIG, "a", StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "localhost:1"))) {
            @Override
            public Map<String, List<TopicPartitionInfo>> getTopicPartitionInfo(final Set<String> asked) {
                final Map<String, List<TopicPartitionInfo>> found = new HashMap<>(described);
                found.keySet().retainAll(asked);
                return found;
            }
        };
        final Cluster cluster = new Cluster("c", List.of(), existing, Set.of(), Set.of());
        final RackAwareTaskAssignor rackAware =
            new RackAwareTaskAssignor(cluster, inputs, changelogs, bySubtopology, racks, topics, configs, Time.SYSTEM);
        final Map<ProcessId, ClientMetadata> known = clients(said, inputs);
        final Map<ProcessId, ClientState> clients = states(known);
        answer.put("probing", new HighAvailabilityTaskAssignor().assign(clients, inputs.keySet(), stateful, rackAware, configs));
        final ObjectNode shares = answer.putObject("clients");
        consumers.forEach((process, members) -> {
            final ClientState state = clients.get(process);
            final ObjectNode share = shares.putObject(process.toString());
            write(share.putArray("active"), state.activeTasks());
            write(share.putArray("standby"), state.standbyTasks());
            final Map<String, Integer> load = new HashMap<>();
            final ObjectNode threads = share.putObject("threads");
            final List<Map<String, List<TaskId>>> rounds = List.of(
                StreamsPartitionAssignor.assignTasksToThreads(state.statefulActiveTasks(), true, members, state, load),
                StreamsPartitionAssignor.assignTasksToThreads(state.standbyTasks(), true, members, state, load),
                StreamsPartitionAssignor.assignTasksToThreads(state.statelessActiveTasks(), false, members, state, load));
            for (final String member : members) {
                final ArrayNode parts = threads.putArray(member);
                rounds.forEach(round -> write(parts.addArray(), round.get(member)));
            }
        });
        sent(said, answer, known, stateful, inputs);
        final Map<String, LegacyTaskAssignor> others =
            Map.of("sticky", new LegacyStickyTaskAssignor(), "previous", new FallbackPriorTaskAssignor());
        others.forEach((name, assignor) -> {
            final Map<ProcessId, ClientState> states = states(clients(said, inputs));
            assignor.assign(states, inputs.keySet(), stateful, rackAware, configs);
            final ObjectNode other = answer.putObject(name);
            states.forEach((process, state) -> {
                final ObjectNode share = other.putObject(process.toString());
                write(share.putArray("active"), state.activeTasks());
                write(share.putArray("standby"), state.standbyTasks());
            });
        });
    }

    /** What the assignors and helpers of users make of a group: the decisions in their order. */
    private static void assignors(final JsonNode said, final ObjectNode answer) {
        final Map<TaskId, Set<TopicPartition>> inputs = new HashMap<>();
        final Map<TaskId, TaskInfo> tasks = new HashMap<>();
        final Map<TaskId, JsonNode> asked = new TreeMap<>();
        said.get("tasks").fields().forEachRemaining(e -> asked.put(TaskId.parse(e.getKey()), e.getValue()));
        asked.forEach((task, places) -> {
            final Set<TaskTopicPartition> known = new HashSet<>();
            final Set<TopicPartition> sources = new HashSet<>();
            inputs.put(task, sources);
            for (final JsonNode racks : places.get(0)) {
                final TopicPartition place = new TopicPartition("in-" + task.subtopology() + "-" + sources.size(), task.partition());
                sources.add(place);
                known.add(new Place(place, true, false, racks(racks)));
            }
            int logs = 0;
            for (final JsonNode racks : places.get(1)) {
                final TopicPartition place = new TopicPartition("log-" + task.subtopology() + "-" + logs++, task.partition());
                known.add(new Place(place, false, true, racks(racks)));
            }
            tasks.put(task, new Info(task, logs > 0, logs > 0 ? Set.of("store") : Set.of(), known));
        });
        final ApplicationState state =
            new DefaultApplicationState(configs(said.get("settings")), tasks, clients(said, inputs));
        write(answer.putObject("sticky"), new StickyTaskAssignor().assign(state));
        write(answer.putObject("keep"), new StickyTaskAssignor(true).assign(state));
        final Map<ProcessId, KafkaStreamsAssignment> identity = TaskAssignmentUtils.identityAssignment(state);
        write(answer.putObject("identity"), new TaskAssignment(identity.values()));
        answer.put("identityError", TaskAssignmentUtils.validateTaskAssignment(state, new TaskAssignment(identity.values())).name());
        final ObjectNode lags = answer.putObject("lags");
        state.kafkaStreamsStates(true).forEach((process, one) -> {
            final ObjectNode known = lags.putObject(process.toString());
            new TreeMap<>(one.statefulTasksToLagSums()).forEach((task, lag) -> known.put(task.toString(), lag));
            for (final String consumer : one.consumerClientIds()) {
                write(known.putArray(consumer), one.prevTasksByLag(consumer));
            }
        });
        final Map<ProcessId, KafkaStreamsAssignment> dealt = new HashMap<>();
        final List<ProcessId> instances = new ArrayList<>(new TreeSet<>(state.kafkaStreamsStates(false).keySet()));
        int next = 0;
        for (final TaskId task : asked.keySet()) {
            dealt.computeIfAbsent(instances.get(next++ % instances.size()), process -> KafkaStreamsAssignment.of(process, Set.of()))
                .assignTask(new AssignedTask(task, AssignedTask.Type.ACTIVE));
        }
        final ObjectNode steps = answer.putObject("dealt");
        final RackAwareOptimizationParams params = RackAwareOptimizationParams.of(state);
        step(steps, "stateful", dealt, each -> TaskAssignmentUtils.optimizeRackAwareActiveTasks(params.forStatefulTasks(), each));
        step(steps, "stateless", dealt, each -> TaskAssignmentUtils.optimizeRackAwareActiveTasks(
            params.forStatelessTasks().withTrafficCostOverride(7).withNonOverlapCostOverride(2), each));
        step(steps, "all", dealt, each -> TaskAssignmentUtils.optimizeRackAwareActiveTasks(params, each));
        // with tags, Kafka Streams places a standby task where none are asked for
        if (said.get("settings").get("standbys").asInt() > 0) {
            step(steps, "standby", dealt, each -> TaskAssignmentUtils.defaultStandbyTaskAssignment(state, each));
            step(steps, "standbyRacks", dealt, each -> TaskAssignmentUtils.optimizeRackAwareStandbyTasks(
                params.withTrafficCostOverride(3), each));
        }
    }

    private static void step(final ObjectNode steps, final String name, final Map<ProcessId, KafkaStreamsAssignment> dealt,
                             final Consumer<Map<ProcessId, KafkaStreamsAssignment>> change) {
        change.accept(dealt);
        write(steps.putObject(name), new TaskAssignment(dealt.values()));
    }

    private static void write(final ObjectNode out, final TaskAssignment decided) {
        final Map<ProcessId, KafkaStreamsAssignment> sorted = new TreeMap<>();
        decided.assignment().forEach(each -> sorted.put(each.processId(), each));
        sorted.forEach((process, each) -> {
            final Map<TaskId, AssignedTask> tasks = new TreeMap<>(each.tasks());
            final ArrayNode parts = out.putArray(process.toString());
            for (final AssignedTask.Type type : AssignedTask.Type.values()) {
                final ArrayNode part = parts.addArray();
                tasks.forEach((id, task) -> {
                    if (task.type() == type) {
                        part.add(id.toString());
                    }
                });
            }
            each.followupRebalanceDeadline().ifPresent(deadline -> parts.add(deadline.toEpochMilli()));
        });
    }

    private record Place(TopicPartition topicPartition, boolean isSource, boolean isChangelog, Optional<Set<String>> rackIds)
        implements TaskTopicPartition {
    }

    /** A task whose place in hash sets is that of its id; those of Kafka Streams have a random one. */
    private record Info(TaskId id, boolean isStateful, Set<String> stateStoreNames, Set<TaskTopicPartition> topicPartitions)
        implements TaskInfo {
        @Override
        public int hashCode() {
            return id.hashCode();
        }
    }

    private static Optional<Set<String>> racks(final JsonNode said) {
        final Set<String> racks = new HashSet<>();
        for (final Node node : nodes(said)) {
            if (node.hasRack()) {
                racks.add(node.rack());
            }
        }
        return Optional.of(racks);
    }

    private static Optional<String> rack(final JsonNode client) {
        return client.get("rack").isNull() ? Optional.empty() : Optional.of(client.get("rack").asText());
    }

    private static AssignmentConfigs configs(final JsonNode set) {
        final List<String> tagKeys = new ArrayList<>();
        set.get("tags").forEach(tag -> tagKeys.add(tag.asText()));
        return new AssignmentConfigs(
            set.get("lag").asLong(), set.get("warmups").asInt(), set.get("standbys").asInt(), 600_000L, tagKeys,
            optional(set.get("traffic")), optional(set.get("overlap")), set.get("strategy").asText());
    }

    private static Map<ProcessId, ClientMetadata> clients(final JsonNode said, final Map<TaskId, Set<TopicPartition>> inputs) {
        final Map<TopicPartition, TaskId> taskOf = new HashMap<>();
        inputs.forEach((task, places) -> places.forEach(place -> taskOf.put(place, task)));
        final Map<TaskId, Long> ends = new HashMap<>();
        said.get("ends").fields().forEachRemaining(e -> ends.put(TaskId.parse(e.getKey()), e.getValue().asLong()));
        final Map<ProcessId, ClientMetadata> clients = new HashMap<>();
        said.get("clients").forEach(client -> {
            final ProcessId process = process(client.get("process").asText());
            final Map<String, String> tags = new TreeMap<>();
            client.get("tags").fields().forEachRemaining(e -> tags.put(e.getKey(), e.getValue().asText()));
            final JsonNode endpoint = client.get("endpoint");
            final ClientMetadata metadata =
                new ClientMetadata(process, endpoint.isNull() ? null : endpoint.asText(), tags, rack(client));
            client.get("consumers").fields().forEachRemaining(consumer -> {
                metadata.addConsumer(consumer.getKey(), owned(client, consumer.getKey(), inputs));
                final Map<TaskId, Long> sums = new TreeMap<>();
                consumer.getValue().fields().forEachRemaining(e -> sums.put(TaskId.parse(e.getKey()), e.getValue().asLong()));
                metadata.addPreviousTasksAndOffsetSums(consumer.getKey(), sums);
            });
            metadata.state().initializePrevTasks(taskOf, false);
            metadata.state().computeTaskLags(process, ends);
            clients.put(process, metadata);
        });
        return clients;
    }

    private static List<TopicPartition> owned(final JsonNode client, final String consumer, final Map<TaskId, Set<TopicPartition>> inputs) {
        final List<TopicPartition> owned = new ArrayList<>();
        client.get("owned").get(consumer).forEach(task -> owned.addAll(inputs.get(TaskId.parse(task.asText()))));
        return owned;
    }

    private static Map<ProcessId, ClientState> states(final Map<ProcessId, ClientMetadata> clients) {
        final Map<ProcessId, ClientState> states = new HashMap<>();
        clients.forEach((process, metadata) -> states.put(process, metadata.state()));
        return states;
    }

    /** What the leader, which is of the first client, sends to each consumer. */
    private static void sent(final JsonNode said, final ObjectNode answer, final Map<ProcessId, ClientMetadata> clients,
                             final Set<TaskId> stateful, final Map<TaskId, Set<TopicPartition>> inputs) {
        final Set<TopicPartition> allOwned = new HashSet<>();
        said.get("clients").forEach(client -> client.get("owned").fieldNames().forEachRemaining(
            consumer -> allOwned.addAll(owned(client, consumer, inputs))));
        if (answer.get("probing").asBoolean()) {
            clients.get(process(said.get("clients").get(0).get("process").asText())).state()
                .setFollowupRebalanceDeadline(Instant.ofEpochMilli(601_000));
        }
        final StreamsPartitionAssignor leader = new StreamsPartitionAssignor();
        final Map<HostInfo, Set<TopicPartition>> hosts = new HashMap<>();
        final Map<HostInfo, Set<TopicPartition>> standbyHosts = new HashMap<>();
        set(leader, "log", LoggerFactory.getLogger(Recorder.class));
        set(leader, "assignmentListener", (AssignorConfiguration.AssignmentListener) stable -> { });
        call(leader, "populatePartitionsByHostMaps", hosts, standbyHosts, inputs, clients);
        @SuppressWarnings("unchecked")
        final Map<String, Assignment> assignments = (Map<String, Assignment>) call(
            leader, "computeNewAssignment", stateful, clients, inputs, hosts, standbyHosts, allOwned, 11, 11, false);
        final ObjectNode sent = answer.putObject("sent");
        new TreeMap<>(assignments).forEach((consumer, assignment) -> {
            final AssignmentInfo info = AssignmentInfo.decode(assignment.userData());
            final ArrayNode parts = sent.putArray(consumer);
            write(parts.addArray(), info.activeTasks());
            final ArrayNode places = parts.addArray();
            assignment.partitions().forEach(place -> places.add(place.toString()));
            write(parts.addArray(), new TreeSet<>(info.standbyTasks().keySet()));
            parts.add(info.nextRebalanceMs());
            for (final Map<HostInfo, Set<TopicPartition>> each : List.of(info.partitionsByHost(), info.standbyPartitionByHost())) {
                final Map<String, Integer> sizes = new TreeMap<>();
                each.forEach((host, held) -> sizes.put(host.host(), held.size()));
                final ArrayNode counts = parts.addArray();
                sizes.values().forEach(size -> counts.add(size));
            }
        });
    }

    private static void set(final Object object, final String name, final Object value) {
        try {
            final Field field = object.getClass().getDeclaredField(name);
            field.setAccessible(true);
            field.set(object, value);
        } catch (final ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    private static Object call(final Object object, final String name, final Object... arguments) {
        try {
            for (final Method method : object.getClass().getDeclaredMethods()) {
                if (method.getName().equals(name)) {
                    method.setAccessible(true);
                    return method.invoke(object, arguments);
                }
            }
            throw new IllegalStateException(name);
        } catch (final ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    private static OptionalInt optional(final JsonNode said) {
        return said.isNull() ? OptionalInt.empty() : OptionalInt.of(said.asInt());
    }

    /** One node for each character of the text, which is the name of its rack; "-": a node without one. */
    private static Node[] nodes(final JsonNode said) {
        return said.asText().chars().mapToObj(rack -> new Node(rack, "host", 1, rack == '-' ? null : Character.toString(rack)))
            .toArray(Node[]::new);
    }

    private static void write(final ArrayNode out, final Iterable<TaskId> tasks) {
        tasks.forEach(task -> out.add(task.toString()));
    }

    private static ProcessId process(final String text) {
        return new ProcessId(UUID.fromString(text));
    }

    private static String hex(final ByteBuffer data) {
        final StringBuilder text = new StringBuilder();
        while (data.hasRemaining()) {
            text.append(String.format("%02x", data.get()));
        }
        return text.toString();
    }
}
