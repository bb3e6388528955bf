package bus

// KeysStream is the stream of idempotency keys, and KeysSubject begins its subjects: a
// hash follows.
const (
	KeysStream  = streamKeys
	KeysSubject = subjectKey
)

// JournalStreams are the streams of durable calls, which are made together.
func JournalStreams() []string {
	return []string{streamCalls, streamIntents, streamJournals, streamKeys, streamObjects, streamResults}
}

// KeepsCalls says that a stream keeps records of durable calls.
func KeepsCalls(stream string) bool {
	switch stream {
	case streamJournals, streamCalls, streamIntents, streamResults, streamObjects:
		return true
	}
	return false
}

// ApprovalsStream is the stream of approvals.
const ApprovalsStream = streamLedger

// KeepsApprovals says that a stream keeps approvals and what they hold.
func KeepsApprovals(stream string) bool { return stream == streamLedger || stream == streamHeld }
