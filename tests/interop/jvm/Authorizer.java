import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.network.ClientInformation;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizationResult;

/**
 * Asks Apache Kafka's StandardAuthorizer. A line of standard input is tab separated: `new SUPER_USERS ALLOW_UNKNOWN`
 * begins anew, `acl TYPE NAME PATTERN PRINCIPAL HOST OPERATION PERMISSION` adds an entry, `ask PRINCIPAL HOST OPERATION
 * TYPE NAME` and `any PRINCIPAL HOST OPERATION TYPE` are answered by a line, 1 for allowed and 0 for denied.
 */
public class Authorizer {
    private static StandardAuthorizer authorizer;
    private static Map<Uuid, StandardAcl> acls;

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        StringBuilder answers = new StringBuilder();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split("\t", -1);
            switch (words[0]) {
                case "new": begin(words); break;
                case "acl": acls.put(Uuid.randomUuid(), acl(words)); break;
                case "load":
                    authorizer.loadSnapshot(acls);
                    authorizer.completeInitialLoad();
                    break;
                case "ask": answers.append(ask(words) ? "1\n" : "0\n"); break;
                case "any": answers.append(any(words) ? "1\n" : "0\n"); break;
                default: throw new IllegalArgumentException(line);
            }
        }
        System.out.print(answers);
        System.exit(0);
    }

    private static void begin(String[] words) {
        Map<String, Object> configs = new HashMap<>();
        configs.put("node.id", "1");
        configs.put("super.users", words[1]);
        configs.put("allow.everyone.if.no.acl.found", words[2]);
        authorizer = new StandardAuthorizer();
        authorizer.configure(configs);
        authorizer.withPluginMetrics(new PluginMetricsImpl(new Metrics(), Map.of()));
        acls = new HashMap<>();
    }

    private static StandardAcl acl(String[] words) {
        return new StandardAcl(type(words[1]), words[2], PatternType.fromCode(Byte.parseByte(words[3])), words[4], words[5],
            operation(words[6]), AclPermissionType.fromCode(Byte.parseByte(words[7])));
    }

    private static boolean ask(String[] words) throws Exception {
        ResourcePattern resource = new ResourcePattern(type(words[4]), words[5], PatternType.LITERAL);
        Action action = new Action(operation(words[3]), resource, 1, false, false);
        return authorizer.authorize(context(words), List.of(action)).get(0) == AuthorizationResult.ALLOWED;
    }

    private static boolean any(String[] words) throws Exception {
        return authorizer.authorizeByResourceType(context(words), operation(words[3]), type(words[4]))
            == AuthorizationResult.ALLOWED;
    }

    private static RequestContext context(String[] words) throws Exception {
        String[] principal = words[1].split(":", 2);
        return new RequestContext(new RequestHeader(ApiKeys.METADATA, (short) 9, "test", 1), "1",
            InetAddress.getByName(words[2]), new KafkaPrincipal(principal[0], principal[1]),
            new ListenerName("PLAINTEXT"), SecurityProtocol.PLAINTEXT, ClientInformation.EMPTY, false);
    }

    private static ResourceType type(String code) {
        return ResourceType.fromCode(Byte.parseByte(code));
    }

    private static AclOperation operation(String code) {
        return AclOperation.fromCode(Byte.parseByte(code));
    }
}
