package dev.tributary.sdk

import java.io.Closeable

/** Sends the queue in order, one request at a time, until it is empty. */
internal class Sender(private val context: SessionContext, private val enrolment: Enrolment) {
    private val store = context.store
    private val queue = context.queue
    private var timer: Cancellable? = null
    private var running: Promise<Boolean>? = null
    private var lock: Closeable? = null
    private var isDueAgain = false

    /** Whether the round goes on without the erasures, and whether the timer waits for nothing else. */
    private var skipsErasures = false
    private var isTimerForErasures = false
    private var isHalted = false
    private var failures = 0

    /** Maximum batch size. Halved after a rejected batch, to isolate the invalid entry. */
    private var batchMax = Limits.BATCH_EVENTS
    private var refusals = 0

    /** Schedules sending after a delay, so that later events can share the request. Does not shorten a back-off. */
    fun soon(delayMs: Long) {
        if (isHalted || (timer != null && !isTimerForErasures)) return
        cancel()
        timer = context.environment.scheduler.schedule(delayMs) {
            timer = null
            flush()
        }
    }

    /** Sends now. The result is true if nothing is left to send. */
    fun flush(): Promise<Boolean> {
        val promise = running ?: Promise()
        when {
            isHalted -> if (running == null) promise.complete(false)
            running != null -> {
                cancel()
                isDueAgain = true
            }
            else -> {
                cancel()
                running = promise
                beginRound()
            }
        }
        return promise
    }

    /** Sends again although the SDK was stopped, because an erasure must reach the server in any case. */
    fun resume() {
        isHalted = false
    }

    /** Stops sending. The result is set when no request is in progress. */
    fun stop(): Promise<Unit> {
        isHalted = true
        cancel()
        val stopped = Promise<Unit>()
        val current = running
        if (current == null) stopped.complete(Unit) else current.then { stopped.complete(Unit) }
        return stopped
    }

    private fun cancel() {
        timer?.cancel()
        timer = null
        isTimerForErasures = false
    }

    /** Takes the lock and sends the first request. */
    private fun beginRound() = guarded {
        isDueAgain = false
        skipsErasures = false
        context.retryAfterMs = 0
        enrolment.beginRound()
        lock = context.vault.tryLock()
        if (lock == null) endRound(Verdict.BUSY) else next()
    }

    /** Runs a part of a round. If the storage or an executor fails, sending must continue nevertheless. */
    private fun guarded(task: () -> Unit) {
        try {
            task()
        } catch (error: Exception) {
            context.report("storage_failed", error.toString())
            endRound(Verdict.LATER)
        }
    }

    private fun endRound(verdict: Verdict) {
        try {
            lock?.close()
        } catch (error: Exception) {
            context.report("storage_failed", error.toString())
        }
        lock = null
        val isThrough = verdict == Verdict.EMPTY || verdict == Verdict.PARTLY
        if (isDueAgain && isThrough && !isHalted) return beginRound()
        val promise = running
        // Reset before the promise is completed, so that a call in between starts a new round.
        running = null
        if (verdict == Verdict.EMPTY) failures = 0
        if (verdict == Verdict.LATER || verdict == Verdict.PARTLY) again(maxOf(context.retryAfterMs, pause()))
        // New events do not wait for the erasures.
        isTimerForErasures = verdict == Verdict.PARTLY
        if (verdict == Verdict.BUSY) again(Limits.BUSY_MS)
        if (verdict == Verdict.HALT) {
            isHalted = true
            cancel()
        }
        promise?.complete(verdict == Verdict.EMPTY)
    }

    private fun again(delayMs: Long) {
        cancel()
        soon(delayMs)
    }

    /** Returns the next delay: doubled on each failure, with jitter so that devices do not retry in sync. */
    private fun pause(): Long {
        val full = minOf(Limits.PAUSE_MS shl minOf(failures, 20), Limits.PAUSE_MAX_MS)
        failures++
        return (full * (0.5 + context.environment.random.nextDouble() / 2)).toLong()
    }

    /** Sends the next request, or ends the round. */
    private fun next() {
        if (isHalted) return endRound(Verdict.HALT)
        val state = store.read()
        // The stored state may contain a refusal, and another device id.
        if (store.isProvisional) return endRound(Verdict.LATER)
        val erasure = state.erasures.firstOrNull().takeUnless { skipsErasures }
        val refusal = state.refusals.firstOrNull()
        if (erasure != null) return erase(erasure)
        if (refusal != null) return refuse(refusal)
        if (state.isErased || state.isOptedOut) {
            queue.clear()
            return endRound(finalVerdict(state))
        }
        val batch = queue.head(batchMax)
        // Events from before a reset do not wait for the new device.
        val isOfEarlierDevice = batch.isNotEmpty() && batch[0].deviceId.let { it != null && it != state.deviceId }
        if (!isOfEarlierDevice && !enrolment.isSettled(state)) {
            return enrolment.enrol { verdict -> guarded { proceed(verdict) } }
        }
        if (batch.isEmpty()) return endRound(if (enrolment.isUpToDate(state)) finalVerdict(state) else Verdict.LATER)
        send(batch, batch[0].deviceId ?: state.deviceId)
    }

    /** Returns the verdict of a round that has nothing more to send. */
    private fun finalVerdict(state: State) = if (state.erasures.isEmpty()) Verdict.EMPTY else Verdict.PARTLY

    private fun proceed(verdict: Verdict?) = if (verdict == null) next() else endRound(verdict)

    private fun request(endpoint: String, body: String, settle: (Outcome) -> Verdict?) =
        context.http.post(endpoint, body) { outcome -> guarded { proceed(settle(outcome)) } }

    private fun send(batch: List<Entry>, deviceId: String) {
        val start = "{\"deviceId\":${Json.quote(deviceId)},"
        if (batch[0].isIdentity) {
            request("identify", start + batch[0].json.substring(1)) { settle(batch, it) }
        } else {
            request("events", start + "\"events\":[" + batch.joinToString(",") { it.json } + "]}") { settle(batch, it) }
        }
    }

    /** Removes settled entries from the queue. Returns null if the next batch may be sent. */
    private fun settle(batch: List<Entry>, outcome: Outcome): Verdict? {
        val kind = outcome.kind
        if (kind == Kind.DONE) return accepted(batch, outcome.data)
        if (kind == Kind.REFUSED) return refused(batch, outcome.code)
        if (kind == Kind.DISABLED) return enrolment.disable()
        return if (kind == Kind.LOCKED) context.reportInvalidKey() else context.later(outcome.afterMs)
    }

    private fun accepted(batch: List<Entry>, data: Any?): Verdict? {
        if (!batch[0].isIdentity && !isComplete(batch, data)) return Verdict.LATER
        queue.remove(batch.map { it.key })
        batchMax = minOf(batchMax * 2, Limits.BATCH_EVENTS)
        failures = 0
        refusals = 0
        return null
    }

    private fun refused(batch: List<Entry>, code: String): Verdict? {
        if (batch.size > 1) {
            batchMax = batch.size / 2
            return null
        }
        context.report("request_refused", "The server rejected a queued entry: $code.")
        queue.remove(listOf(batch[0].key))
        if (++refusals < Limits.REFUSALS) return null
        refusals = 0
        return context.later(Limits.REFUSALS_PAUSE_MS)
    }

    /** Returns whether the response covers every event. Rejected events are reported. */
    private fun isComplete(batch: List<Entry>, data: Any?): Boolean {
        if (data !is List<*> || data.size != batch.size) return false
        for (item in data) {
            val result = item.asObject() ?: return false
            if (result["status"] != "rejected") continue
            val details = result["error"].asObject()?.get("details") as? List<*> ?: emptyList<Any?>()
            val reasons = details.joinToString(" ") { detail ->
                detail.asObject().let { "${it?.get("field")}: ${it?.get("message")}" }
            }
            context.report("event_rejected", reasons, result["eventId"] as? String)
        }
        return true
    }

    /** Asks the server to erase a device. */
    private fun erase(erasure: Pledge) {
        val body = mapOf("deviceId" to erasure.deviceId, "eraseToken" to erasure.token)
        request("erase", Json.write(body)) { outcome ->
            // A node of an older version does not know erasures. It must not block the queue.
            skipsErasures = outcome.isForeign
            if (skipsErasures) return@request null
            val verdict = priorVerdict(outcome, "status")
            if (verdict == null) {
                if (outcome.kind == Kind.REFUSED) {
                    context.report("erase_refused", "The server rejected the erasure: ${outcome.code}.")
                }
                store.update { it.copy(erasures = it.erasures - erasure) }
            }
            verdict
        }
    }

    /** Sends a refusal of an earlier device, or of a user who opted out. */
    private fun refuse(refusal: Pledge) {
        val body = mapOf(
            "deviceId" to refusal.deviceId,
            "platform" to context.environment.device.platform,
            "sdkVersion" to Limits.VERSION,
            "consent" to refusal.consent.toMap(),
            "eraseToken" to refusal.token,
        )
        request("configure", Json.write(body)) { outcome ->
            val verdict = priorVerdict(outcome, "sdkEnabled")
            if (verdict == null) {
                if (outcome.kind == Kind.REFUSED) context.report("request_refused", "configure: ${outcome.code}")
                store.update { it.copy(refusals = it.refusals - refusal) }
            }
            verdict
        }
    }

    /** Returns the verdict if an erasure or refusal must be sent again. `proof` is a field of a valid response. */
    private fun priorVerdict(outcome: Outcome, proof: String): Verdict? {
        if (outcome.kind == Kind.LATER) return context.later(outcome.afterMs)
        if (outcome.kind == Kind.LOCKED) return context.reportInvalidKey()
        // A response that says something else is not Tributary's.
        val isOdd = outcome.kind == Kind.DONE && outcome.data.asObject()?.get(proof) == null
        return if (isOdd) Verdict.LATER else null
    }
}
