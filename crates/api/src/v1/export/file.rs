//! A file on its way to the client. One that stops without having said that it is whole breaks off, and the client sees it:
//! the connection ends before the last chunk.

use axum::body::HttpBody;
use bytes::Bytes;
use http_body::Frame;
use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::sync::mpsc;

/// What comes next.
pub(super) enum ExportChunk {
    Bytes(Bytes),
    /// Nothing: the file is whole.
    End,
}

/// The file, as a body.
pub(super) struct ExportBody {
    chunks: mpsc::Receiver<ExportChunk>,
    is_finished: bool,
}

impl ExportBody {
    /// With who sends it, and how many pieces wait for a slow client at most.
    pub(super) fn new(waiting_max: usize) -> (mpsc::Sender<ExportChunk>, Self) {
        let (sender, pieces) = mpsc::channel(waiting_max);
        let file = Self {
            chunks: pieces,
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
        let piece = ready!(self.chunks.poll_recv(context));
        self.is_finished = !matches!(piece, Some(ExportChunk::Bytes(_)));
        Poll::Ready(match piece {
            Some(ExportChunk::Bytes(bytes)) => Some(Ok(Frame::data(bytes))),
            Some(ExportChunk::End) => None,
            None => Some(Err("the export broke off".into())),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt as _;

    async fn sent(pieces: Vec<ExportChunk>) -> Option<Vec<u8>> {
        let (sender, file) = ExportBody::new(pieces.len().max(1));
        for piece in pieces {
            assert!(sender.send(piece).await.is_ok());
        }
        drop(sender);
        let whole = file.collect().await.ok()?;
        Some(whole.to_bytes().to_vec())
    }

    fn bytes(text: &'static str) -> ExportChunk {
        ExportChunk::Bytes(Bytes::from_static(text.as_bytes()))
    }

    #[tokio::test]
    async fn a_file_is_whole_when_its_end_was_said() {
        let whole = sent(vec![bytes("a"), bytes("b"), ExportChunk::End]).await;
        assert_eq!(whole.as_deref(), Some(b"ab".as_slice()));
        assert_eq!(
            sent(vec![ExportChunk::End]).await.as_deref(),
            Some([].as_slice())
        );
    }

    #[tokio::test]
    async fn a_file_without_its_end_breaks_off() {
        assert_eq!(sent(vec![bytes("a"), bytes("b")]).await, None);
        assert_eq!(sent(Vec::new()).await, None);
    }
}
