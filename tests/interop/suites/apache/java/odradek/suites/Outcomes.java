package odradek.suites;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.support.descriptor.ClassSource;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;

/** Appends a line of JSON to odradek.outcomes when a test starts and when it ends: after a hang the file names the test. */
public final class Outcomes implements TestExecutionListener {
    private static final Pattern INVOCATION = Pattern.compile("(?<=:#)\\d+");
    private static final int STACK_LENGTH = 6_000;

    private final ObjectMapper json = new ObjectMapper();
    private final Map<String, Long> started = new HashMap<>();

    @Override
    public void executionStarted(TestIdentifier test) {
        started.put(test.getUniqueId(), System.nanoTime());
        if (test.isTest())
            write(test, "started", "");
    }

    @Override
    public void executionSkipped(TestIdentifier test, String reason) {
        write(test, "skipped", reason);
    }

    @Override
    public void executionFinished(TestIdentifier test, TestExecutionResult result) {
        Throwable thrown = result.getThrowable().orElse(null);
        switch (result.getStatus()) {
            case SUCCESSFUL:
                if (test.isTest())
                    write(test, "passed", "");
                break;
            case ABORTED:
                write(test, "skipped", String.valueOf(thrown));
                break;
            default:
                NotPointable cause = notPointable(thrown, 0);
                write(test, cause == null ? "failed" : "not pointable", cause == null ? stack(thrown) : cause.getMessage());
        }
    }

    private static NotPointable notPointable(Throwable thrown, int depth) {
        if (thrown == null || thrown instanceof NotPointable || depth > 20)
            return thrown instanceof NotPointable ? (NotPointable) thrown : null;
        for (Throwable suppressed : thrown.getSuppressed()) {
            NotPointable found = notPointable(suppressed, depth + 1);
            if (found != null)
                return found;
        }
        return notPointable(thrown.getCause(), depth + 1);
    }

    private static String stack(Throwable thrown) {
        StringWriter text = new StringWriter();
        if (thrown != null)
            thrown.printStackTrace(new PrintWriter(text));
        return text.toString().substring(0, Math.min(text.getBuffer().length(), STACK_LENGTH));
    }

    private void write(TestIdentifier test, String outcome, String reason) {
        long began = started.getOrDefault(test.getUniqueId(), System.nanoTime());
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("test", name(test));
        line.put("id", test.getUniqueId());
        line.put("display", test.getDisplayName());
        line.put("outcome", outcome);
        line.put("seconds", (System.nanoTime() - began) / 100_000_000 / 10.0);
        line.put("reason", reason);
        try {
            Files.write(Path.of(System.getProperty("odradek.outcomes")),
                    (json.writeValueAsString(line) + "\n").getBytes(StandardCharsets.UTF_8),
                    StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Returns Class.method[invocation], or the class of a container that failed. */
    private static String name(TestIdentifier test) {
        String invocations = INVOCATION.matcher(test.getUniqueId()).results().map(MatchResult::group)
                .map(number -> "[" + number + "]").collect(Collectors.joining());
        return test.getSource().map(source -> {
            if (source instanceof MethodSource)
                return simple(((MethodSource) source).getClassName()) + "." + ((MethodSource) source).getMethodName() + invocations;
            return source instanceof ClassSource ? simple(((ClassSource) source).getClassName()) : test.getDisplayName();
        }).orElse(test.getDisplayName() + invocations);
    }

    private static String simple(String name) {
        return name.substring(name.lastIndexOf('.') + 1);
    }
}
