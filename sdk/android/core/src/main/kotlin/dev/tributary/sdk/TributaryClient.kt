package dev.tributary.sdk

/**
 * The SDK without a platform. Apps use `Tributary` instead; this class is for tests and for other JVM platforms.
 *
 * All methods may be called from any thread and return at once. The calls take effect in their order. A returned
 * [Promise] is done when the call's effect is on disk. No method throws because of network, storage or server errors.
 */
class TributaryClient {
    private val lock = Any()

    /** Calls before `configure`, in order. */
    private val pending = ArrayList<PendingCall>()
    private var environment: Environment? = null
    private var session: Session? = null

    /** The latest session, also after `shutdown`. */
    private var reporter: Session? = null

    /** Whether `configure` was called, without `shutdown` afterwards. */
    val isRunning: Boolean get() = synchronized(lock) { session != null }

    /** Starts the SDK. A second call without `shutdown` in between is ignored. Throws if an option is missing. */
    fun configure(options: TributaryOptions, environment: Environment): Promise<Unit> {
        val isComplete = options.key.isNotBlank() && options.baseUrl.isNotBlank()
        require(isComplete) { "Tributary: configure needs key and baseUrl." }
        val loaded = promise<Unit>()
        synchronized(lock) {
            if (session != null) return loaded.also { it.complete(Unit) }
            val session = Session(environment, options)
            this.session = session
            reporter = session
            this.environment = environment
            val calls = ArrayList(pending)
            pending.clear()
            environment.scheduler.execute {
                session.load()
                calls.forEach { it.run(session) }
                options.consent?.let { session.setConsent(it) }
                session.start()
                loaded.complete(Unit)
            }
        }
        return loaded
    }

    /** Records an event. The result is its id once it is on disk, or null if it was not recorded. */
    @JvmOverloads
    fun trackEvent(name: String, params: Map<String, *>? = null, eventId: String? = null): Promise<String?> {
        val now = synchronized(lock) { environment }?.clock?.now() ?: System.currentTimeMillis()
        val call = trackCall(name, params, eventId, now)
        return call(drop = { it.complete(null) }) { session, done -> done.complete(session.track(call)) }
    }

    /** Sets your own id for the user; null after sign-out. */
    @JvmOverloads
    fun setUserId(userId: String?, signature: String? = null): Promise<Unit> =
        simple { it.setUserId(userId?.ifEmpty { null }, signature?.ifEmpty { null }) }

    /** Sets the email address and phone number that ad networks match users by. Only hashes leave the device. */
    fun setAdvancedMatching(email: String?, phone: String?): Promise<Unit> = simple { it.setMatching(email, phone) }

    /** Sets the user's consent. Fields that are null stay unchanged. */
    fun setConsent(consent: Consent): Promise<Unit> = simple { it.setConsent(consent) }

    /** Sets parameters that are added to every event; an event's own parameters win. Replaces the earlier ones. */
    fun setGlobalParams(params: Map<String, *>?): Promise<Unit> {
        val call = trackCall("global parameters", params, null, 0)
        return simple { it.setGlobalParams(call.params.takeIf { call.paramsProblem == null } ?: emptyMap()) }
    }

    /** Reports a URL that opened the app. */
    fun openUrl(url: String): Promise<Unit> = simple { it.openUrl(url) }

    /** Returns the attribution of the install; null after the timeout, or if the SDK does not record. */
    @JvmOverloads
    fun getAttribution(timeoutMs: Long = Limits.ATTRIBUTION_TIMEOUT_MS): Promise<Attribution?> =
        call { session, done -> session.getAttribution(timeoutMs).then { done.complete(it) } }

    /** Returns the attribution if it is known, without waiting for the server. */
    fun getKnownAttribution(): Promise<Attribution?> =
        call { session, done -> done.complete(session.knownAttribution()) }

    /** Returns the id of the click that led to the app; null if there is none. */
    fun getClickId(): Promise<String?> = call { session, done -> done.complete(session.getClickId()) }

    /** Returns the device id; null after `eraseMe`. Pass it to your billing provider as `tributaryId`. */
    fun getDeviceId(): Promise<String?> = call { session, done -> done.complete(session.getDeviceId()) }

    /** Returns the number of events that the server has not confirmed. */
    fun getQueuedEvents(): Promise<Int> = call { session, done -> done.complete(session.queuedEvents()) }

    /** Sends the queue now. The result is true if it is empty afterwards. */
    fun flush(): Promise<Boolean> = call { session, done -> session.flush().then { done.complete(it) } }

    /** Stops recording, deletes unsent events and tells the server once that the user refuses. */
    fun optOut(): Promise<Unit> = simple { it.optOut() }

    /** Records again after `optOut` or `eraseMe`. The consent stays refused until `setConsent`. */
    fun optIn(): Promise<Unit> = simple { it.optIn() }

    /** Forgets the user: new device id, no consent, no user id. Unsent events keep the old device id. */
    fun reset(): Promise<Unit> = simple { it.reset() }

    /** Asks the server to erase this device's data, deletes everything stored here, and stops recording. */
    fun eraseMe(): Promise<Unit> = simple { it.eraseMe() }

    /** Stops the SDK. The queue stays stored for the next `configure`. */
    fun shutdown(): Promise<Unit> {
        val stopped = promise<Unit>()
        synchronized(lock) {
            val ending = session
            val scheduler = environment?.scheduler
            session = null
            environment = null
            if (ending == null || scheduler == null) stopped.complete(Unit)
            else scheduler.execute { ending.shutdown().then { stopped.complete(Unit) } }
        }
        return stopped
    }

    private fun simple(run: (Session) -> Unit): Promise<Unit> = call { session, done ->
        run(session)
        done.complete(Unit)
    }

    /** Runs a call on the scheduler, or keeps it until `configure`. */
    private fun <T> call(drop: ((Promise<T>) -> Unit)? = null, run: (Session, Promise<T>) -> Unit): Promise<T> {
        val done = promise<T>()
        val dropped = synchronized(lock) {
            val session = session
            val scheduler = environment?.scheduler
            if (session != null && scheduler != null) {
                scheduler.execute { run(session, done) }
                null
            } else {
                pending.add(PendingCall(drop?.let { { it(done) } }) { run(it, done) })
                dropOldest()
            }
        }
        // It runs the app's listeners, which must not hold the lock.
        dropped?.drop?.invoke()
        return done
    }

    /** Removes the oldest event over the limit and returns it. Other calls, such as consent, are never dropped. */
    private fun dropOldest(): PendingCall? {
        val events = pending.filter { it.drop != null }
        return if (events.size > Limits.PENDING_EVENTS) events[0].also { pending.remove(it) } else null
    }

    /** Returns a promise that reports the exceptions of its listeners. Before `configure`, nobody could read them. */
    private fun <T> promise() = Promise<T> { error -> synchronized(lock) { reporter }?.reportListener(error) }

    /** A buffered call. `drop` is set for events. */
    private class PendingCall(val drop: (() -> Unit)?, val run: (Session) -> Unit)
}
