package odradek.suites;

import java.util.regex.Pattern;
import org.junit.jupiter.api.extension.ConditionEvaluationResult;
import org.junit.jupiter.api.extension.ExecutionCondition;
import org.junit.jupiter.api.extension.ExtensionContext;

/** Skips tests whose display names match odradek.skip, for example the invocations with one group protocol. */
public final class Skip implements ExecutionCondition {
    private static final String SKIPPED = System.getProperty("odradek.skip", "");
    private static final String REASON = System.getProperty("odradek.skip.reason", "");

    @Override
    public ConditionEvaluationResult evaluateExecutionCondition(ExtensionContext context) {
        boolean skipped = !SKIPPED.isEmpty() && context.getTestMethod().isPresent()
                && Pattern.compile(SKIPPED).matcher(context.getDisplayName()).find();
        return skipped ? ConditionEvaluationResult.disabled(REASON) : ConditionEvaluationResult.enabled("");
    }
}
