plugins {
    kotlin("jvm") version "2.2.20" apply false
    kotlin("android") version "2.2.20" apply false
    id("com.android.library") version "8.13.0" apply false
    id("com.android.application") version "8.13.0" apply false
}

// The publications of both modules. `./gradlew publishToMavenLocal` is enough for a try; set `mavenUrl`, `mavenUser` and
// `mavenPassword` (gradle.properties in your home folder) to publish to your repository with `./gradlew publish`.
subprojects {
    pluginManager.withPlugin("maven-publish") {
        extensions.configure<PublishingExtension> {
            val repository = providers.gradleProperty("mavenUrl")
            if (repository.isPresent) {
                repositories.maven(repository.get()) {
                    credentials {
                        username = providers.gradleProperty("mavenUser").orNull
                        password = providers.gradleProperty("mavenPassword").orNull
                    }
                }
            }
            publications.withType<MavenPublication>().configureEach {
                pom {
                    name = "Tributary SDK for Android"
                    description = "Exactly-once event tracking and install attribution with your own Tributary server."
                    url = "https://git.example.com/tributary/tributary"
                    licenses {
                        license {
                            name = "MIT"
                            url = "https://opensource.org/license/mit"
                        }
                    }
                    scm { url = "https://git.example.com/tributary/tributary" }
                }
            }
        }
    }
}
