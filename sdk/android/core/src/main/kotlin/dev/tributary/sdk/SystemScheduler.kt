package dev.tributary.sdk

import java.util.concurrent.Executor
import java.util.concurrent.ScheduledThreadPoolExecutor
import java.util.concurrent.SynchronousQueue
import java.util.concurrent.ThreadFactory
import java.util.concurrent.ThreadPoolExecutor
import java.util.concurrent.TimeUnit

/** The scheduler of an app: one background thread. */
class SystemScheduler : Scheduler {
    private val executor = ScheduledThreadPoolExecutor(1, DaemonThreads("tributary"))

    override fun execute(task: Runnable) = executor.execute(task)

    override fun schedule(delayMs: Long, task: Runnable): Cancellable {
        val future = executor.schedule(task, delayMs, TimeUnit.MILLISECONDS)
        return Cancellable { future.cancel(false) }
    }
}

/** Runs requests and providers. Its threads end when they have been idle. */
class NetworkExecutor : Executor {
    private val executor = ThreadPoolExecutor(
        0,
        Limits.NETWORK_THREADS,
        Limits.IDLE_SECONDS,
        TimeUnit.SECONDS,
        SynchronousQueue(),
        DaemonThreads("tributary-network"),
    )

    override fun execute(task: Runnable) = executor.execute(task)
}

/** Creates threads that do not keep the process alive. */
private class DaemonThreads(private val name: String) : ThreadFactory {
    override fun newThread(task: Runnable) = Thread(task, name).apply { isDaemon = true }
}
