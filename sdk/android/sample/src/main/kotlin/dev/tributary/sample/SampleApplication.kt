package dev.tributary.sample

import android.app.Application
import android.util.Log
import dev.tributary.sdk.LogLevel
import dev.tributary.sdk.Tributary
import dev.tributary.sdk.TributaryOptions

/** Starts the SDK with the process, so that it sees every activity. */
class SampleApplication : Application() {
    override fun onCreate() {
        super.onCreate()
        // Your app's SDK key, from the Settings page of the dashboard, and the URL of your server.
        val options = TributaryOptions(key = "pk_test_…", baseUrl = "https://links.example.com")
            .onAttribution { Log.d("Sample", "installed by ${it.network}: ${it.reason}") }
            .onOpenedLink { Log.d("Sample", "open ${it.deepLink}") }
            .onProblem { Log.w("Sample", "${it.code}: ${it.message}") }
        options.logLevel = LogLevel.DEBUG
        Tributary.configure(this, options)
    }
}
