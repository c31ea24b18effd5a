//! A task that runs until the store is closed or dropped.

use tokio::task::JoinHandle;

pub(crate) struct BackgroundTask(JoinHandle<()>);

impl BackgroundTask {
    pub(crate) fn spawn(work: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(work))
    }

    pub(crate) fn stop(&self) {
        self.0.abort();
    }
}

impl Drop for BackgroundTask {
    fn drop(&mut self) {
        self.stop();
    }
}
