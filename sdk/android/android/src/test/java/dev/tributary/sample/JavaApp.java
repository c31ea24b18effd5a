package dev.tributary.sample;

import android.content.Context;
import android.content.Intent;
import dev.tributary.sdk.Consent;
import dev.tributary.sdk.LogLevel;
import dev.tributary.sdk.Tracking;
import dev.tributary.sdk.Tributary;
import dev.tributary.sdk.TributaryOptions;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;

/** Every call from Java. It is compiled only, to keep the API usable without Kotlin. */
final class JavaApp {
    void start(Context context) {
        TributaryOptions options = new TributaryOptions("pk_live_…", "https://links.example.com");
        options.setConsent(new Consent(true, true, Tracking.AUTHORIZED));
        options.setUserId("user-42");
        options.setUserIdSignature("…");
        options.setDeviceId(null);
        options.setQueueLimit(500);
        options.setFlushDelayMs(500);
        options.setLogLevel(LogLevel.DEBUG);
        options.onAttribution(attribution -> System.out.println(attribution.getNetwork()))
                .onOpenedLink(link -> System.out.println(link.getDeepLink()))
                .onProblem(problem -> System.out.println(problem.getCode() + problem.getMessage() + problem.getEventId()));
        Tributary.configure(context, options);
    }

    void use(Intent intent) throws ExecutionException, InterruptedException {
        Map<String, Object> params = new HashMap<>();
        params.put("revenue", "9.99");
        params.put("currency", "EUR");
        Tributary.trackEvent("view_content");
        Tributary.trackEvent("purchase", params);
        Future<String> id = Tributary.trackEvent("purchase", params, "order-1001");
        System.out.println(id.get());
        Tributary.setGlobalParams(Collections.singletonMap("level", 3));
        Tributary.setUserId("user-42");
        Tributary.setUserId("user-42", "signature");
        Tributary.setAdvancedMatching("joe@example.com");
        Tributary.setAdvancedMatching("joe@example.com", "+49 151 23456789");
        Tributary.setConsent(new Consent(false, false));
        Tributary.handleIntent(intent);
        Tributary.openUrl("https://go.example.com/c/spring");
        Tributary.getAttribution(attribution -> System.out.println(attribution));
        System.out.println(Tributary.getAttribution(5_000).get());
        Tributary.getDeviceId().then(deviceId -> System.out.println(deviceId));
        System.out.println(Tributary.getClickId().get());
        Tributary.flush();
        Tributary.optOut();
        Tributary.optIn();
        Tributary.reset();
        Tributary.eraseMe();
        Tributary.shutdown();
    }
}
