package dev.tributary.sdk

/** The limits of the SDK. One object, because each companion object would add a class to the jar. */
internal object Limits {
    /** SDK version as sent to the server. */
    const val VERSION = "android-0.1.0"

    /** Server limits: characters in a name, bytes of the parameters as JSON, bytes of an event id. */
    const val NAME_CHARACTERS = 255
    const val PARAMS_BYTES = 16_384
    const val EVENT_ID_BYTES = 255

    /** 2015-01-01: the server rejects earlier times. */
    const val EARLIEST_MS = 1_420_070_400_000L

    /** Maximum number of events per request (the server's limit). */
    const val BATCH_EVENTS = 100

    /** Maximum bytes per request; the server's limit is 1 MiB. */
    const val BATCH_BYTES = 500_000

    /** Upper bound for the clock, so that sequence numbers keep 16 digits. */
    const val CLOCK_MAX_MS = 8_000_000_000_000L

    /** Largest backward step of the clock that counts as a correction. */
    const val CORRECTION_MS = 1_000L

    /** Exponential back-off: first and maximum delay. */
    const val PAUSE_MS = 1_000L
    const val PAUSE_MAX_MS = 300_000L

    /** Maximum `Retry-After` that is honoured. */
    const val RETRY_AFTER_MAX_MS = 3_600_000L

    /** Number of consecutive rejections after which the SDK assumes a faulty server, and the pause that follows. */
    const val REFUSALS = 10
    const val REFUSALS_PAUSE_MS = 3_600_000L

    /** Retry delay while another process is sending. */
    const val BUSY_MS = 2_000L

    /** Number of failed `configure` calls after which a new device's events are sent without waiting for it. */
    const val CONFIGURE_ERRORS = 5

    /** Time limit for a provider. It is short, because the first request waits for the providers. */
    const val PROVIDER_MS = 5_000L

    /** Maximum number of events buffered before `configure`. */
    const val PENDING_EVENTS = 1_000
    const val ATTRIBUTION_TIMEOUT_MS = 10_000L

    /** Maximum nesting of JSON. It also detects maps that contain themselves. */
    const val JSON_DEPTH = 64

    /** Largest whole float that is written without an exponent. */
    const val WHOLE_FLOAT = 1e15

    /** Time limit of a request: long enough for slow mobile networks. */
    const val REQUEST_MS = 20_000

    /** Maximum size of a response: far more than the server sends. */
    const val RESPONSE_BYTES = 1_000_000

    /** A write takes seconds at most, so an older temporary file belongs to no running process. */
    const val LEFTOVER_AGE_MS = 3_600_000L

    /** One request and three providers at a time; twice as many, because a provider that hangs keeps its thread. */
    const val NETWORK_THREADS = 8
    const val IDLE_SECONDS = 10L
}
