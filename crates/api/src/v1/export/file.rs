//! The streamed body of an export. If the sender stops without the end marker, the body fails: the
//! connection closes before the last chunk, so the client knows that the file is incomplete.

use axum::body::HttpBody;
use bytes::Bytes;
use http_body::Frame;
use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::sync::mpsc;

/// The next part of the body.
pub(in crate::v1) enum ExportChunk {
    Bytes(Bytes),
    /// End marker: the file is complete.
    End,
}

/// HTTP body of an export.
pub(in crate::v1) struct ExportBody {
    chunks: mpsc::Receiver<ExportChunk>,
    is_finished: bool,
}

impl ExportBody {
    /// Creates a body with its sender. At most `waiting_max` chunks are buffered for a slow client.
    pub(in crate::v1) fn new(waiting_max: usize) -> (mpsc::Sender<ExportChunk>, Self) {
        let (sender, chunks) = mpsc::channel(waiting_max);
        let file = Self {
            chunks,
            is_finished: false,
        };
        (sender, file)
    }
}

impl HttpBody for ExportBody {
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.is_finished {
            return Poll::Ready(None);
        }
        let chunk = ready!(self.chunks.poll_recv(context));
        self.is_finished = !matches!(chunk, Some(ExportChunk::Bytes(_)));
        Poll::Ready(match chunk {
            Some(ExportChunk::Bytes(bytes)) => Some(Ok(Frame::data(bytes))),
            Some(ExportChunk::End) => None,
            None => Some(Err("export aborted".into())),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt as _;

    async fn sent(chunks: Vec<ExportChunk>) -> Option<Vec<u8>> {
        let (sender, file) = ExportBody::new(chunks.len().max(1));
        for chunk in chunks {
            assert!(sender.send(chunk).await.is_ok());
        }
        drop(sender);
        let whole = file.collect().await.ok()?;
        Some(whole.to_bytes().to_vec())
    }

    fn bytes(text: &'static str) -> ExportChunk {
        ExportChunk::Bytes(Bytes::from_static(text.as_bytes()))
    }

    #[tokio::test]
    async fn a_file_with_its_end_marker_is_complete() {
        let whole = sent(vec![bytes("a"), bytes("b"), ExportChunk::End]).await;
        assert_eq!(whole.as_deref(), Some(b"ab".as_slice()));
        assert_eq!(
            sent(vec![ExportChunk::End]).await.as_deref(),
            Some([].as_slice())
        );
    }

    #[tokio::test]
    async fn a_file_without_its_end_marker_fails() {
        assert_eq!(sent(vec![bytes("a"), bytes("b")]).await, None);
        assert_eq!(sent(Vec::new()).await, None);
    }
}
