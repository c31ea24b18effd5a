package dev.tributary.sdk

import java.util.concurrent.CountDownLatch
import java.util.concurrent.Future
import java.util.concurrent.TimeUnit
import java.util.concurrent.TimeoutException

/**
 * A value that is known later.
 *
 * `get` waits for it. Do not call it on the main thread. In a listener, which runs on the SDK's thread, it throws
 * [IllegalStateException] unless the value is known, because it would wait forever; use [then] there.
 */
class Promise<T> internal constructor(private val failed: ((Exception) -> Unit)? = null) : Future<T> {
    private val latch = CountDownLatch(1)
    private var listeners: ArrayList<Callback<T>>? = ArrayList()
    private var value: T? = null

    /** Sets the value. Later calls have no effect. */
    internal fun complete(value: T) {
        val waiting = synchronized(this) {
            val waiting = listeners ?: return
            listeners = null
            this.value = value
            waiting
        }
        latch.countDown()
        val outer = inListener.get()
        inListener.set(true)
        try {
            for (listener in waiting) call(listener, value)
        } finally {
            inListener.set(outer)
        }
    }

    /**
     * Calls the listener with the value, at once if it is known, otherwise later on the SDK's thread. A listener must
     * not block. If it throws, `onProblem` receives `callback_failed`.
     */
    fun then(listener: Callback<T>) {
        synchronized(this) {
            val waiting = listeners
            if (waiting != null) {
                waiting.add(listener)
                return
            }
        }
        call(listener, found())
    }

    override fun get(): T {
        refuseToBlock()
        latch.await()
        return found()
    }

    override fun get(timeout: Long, unit: TimeUnit): T {
        refuseToBlock()
        if (!latch.await(timeout, unit)) throw TimeoutException()
        return found()
    }

    override fun isDone() = latch.count == 0L

    override fun isCancelled() = false

    /** Calls cannot be cancelled. */
    override fun cancel(mayInterruptIfRunning: Boolean) = false

    /** Calls a listener. Its exception must not reach the SDK or prevent the next listener. */
    private fun call(listener: Callback<T>, value: T) {
        try {
            listener.call(value)
        } catch (error: Exception) {
            failed?.invoke(error)
        }
    }

    private fun refuseToBlock() =
        check(isDone || inListener.get() == null) { "Tributary: get() would block the SDK's thread; use then()." }

    @Suppress("UNCHECKED_CAST")
    private fun found(): T = synchronized(this) { value as T }
}
