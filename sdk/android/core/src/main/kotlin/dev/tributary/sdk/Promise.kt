package dev.tributary.sdk

import java.util.concurrent.CountDownLatch
import java.util.concurrent.Future
import java.util.concurrent.TimeUnit
import java.util.concurrent.TimeoutException

/** A value that is known later. `get` waits for it; do not call it on the main thread. */
class Promise<T> internal constructor() : Future<T> {
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
        for (listener in waiting) listener.call(value)
    }

    /** Calls the listener with the value, at once if it is known, otherwise later on the SDK's thread. */
    fun then(listener: Callback<T>) {
        synchronized(this) {
            val waiting = listeners
            if (waiting != null) {
                waiting.add(listener)
                return
            }
        }
        listener.call(found())
    }

    override fun get(): T {
        latch.await()
        return found()
    }

    override fun get(timeout: Long, unit: TimeUnit): T {
        if (!latch.await(timeout, unit)) throw TimeoutException()
        return found()
    }

    override fun isDone() = latch.count == 0L

    override fun isCancelled() = false

    /** Calls cannot be cancelled. */
    override fun cancel(mayInterruptIfRunning: Boolean) = false

    @Suppress("UNCHECKED_CAST")
    private fun found(): T = synchronized(this) { value as T }
}
