package journal

import (
	"errors"
	"fmt"
	"time"

	"github.com/callyard/callyard/pkg/bus/frame"
)

// A stored message of a journal consists of a version byte, a byte that identifies the log, and frames
// (pkg/bus/frame): first the head of the message, without a payload, then one frame per record. The
// journal has a separate version, because stored messages outlive the wire protocol.
const recordVersion = 1

// Log identifies one of the logs of a journal. Numbers must never be reused.
type Log byte

const (
	LogCalls   Log = 1
	LogIntents Log = 2
	LogResults Log = 3
)

// Field tags of the heads. Tags must never be reused; 0 is not a tag.
const (
	tagEpoch       = 1
	tagWriter      = 2
	tagNumber      = 3
	tagFirst       = 4
	tagCount       = 5
	tagFlags       = 6
	tagAt          = 7
	tagIndex       = 8
	tagOutcome     = 9
	tagAttempt     = 10
	tagSettle      = 11
	tagID          = 12
	tagCustomID    = 13
	tagMethod      = 14
	tagServer      = 15
	tagTool        = 16
	tagToolDigest  = 17
	tagTimeout     = 18
	tagExpires     = 19
	tagAccepted    = 20
	tagMaxAttempts = 21
	tagName        = 22
	tagOwner       = 23
	tagGroup       = 24
	tagTraceParent = 25
	tagTraceState  = 26
	tagCallbackURL = 27
	tagKey         = 28
	tagApproval    = 29
	tagWarrant     = 30
	tagObject      = 31
	tagObjectSum   = 32
	tagObjectSize  = 33
	tagWorker      = 34
	tagStarted     = 35
	tagEnded       = 36
	tagDigest      = 37
	tagBy          = 38
	tagReason      = 39
	tagExtra       = 40
	tagTenant      = 41
	tagReplayOf    = 43 // 42 is tagSame
	tagRecorded    = 44
)

const (
	flagOpening   = 1 << 0 // message: its writer took over the log
	flagSealed    = 1 << 1 // message: the last one of the log
	flagSafe      = 1 << 2
	flagHeld      = 1 << 3
	flagVoid      = 1 << 4
	flagToolError = 1 << 5
	flagError     = 1 << 6 // the payload is an error
	flagInput     = 1 << 7
)

// Head holds the metadata of a message.
type Head struct {
	Log Log
	// Epoch never decreases within a log. Writer is random for each writer, and Number counts
	// its messages, so that a writer can identify its own messages.
	Epoch, Writer, Number uint64
	// First is the number of records in the log before this message. For calls it is the index
	// of the first one in this message.
	First uint64
	// Count is the number of records in the message.
	Count int
	// Opening is set on the message with which a writer takes over the log. Sealed is set on the
	// last message.
	Opening, Sealed bool
	// At is the time of writing, by the writer's clock.
	At time.Time
}

// Decoding errors of stored records.
var (
	errVersion = errors.New("the journal was written by another version: use that version to finish it, or a newer version that can read it")
	errLog     = errors.New("the message belongs to another log")
	errCount   = errors.New("the records of the message do not match its header")
)

// appendHead starts a message; dst must be empty. The frames of Count records must follow.
func appendHead(dst []byte, h *Head) []byte {
	dst = append(dst, recordVersion, byte(h.Log))
	dst, start := frame.Begin(dst)
	dst = frame.AppendUint(dst, tagEpoch, h.Epoch)
	dst = frame.AppendFixed(dst, tagWriter, h.Writer)
	dst = frame.AppendUint(dst, tagNumber, h.Number)
	dst = frame.AppendUint(dst, tagFirst, h.First)
	dst = frame.AppendUint(dst, tagCount, uint64(max(h.Count, 0)))
	dst = frame.AppendUint(dst, tagFlags, frame.Bit(flagOpening, h.Opening)|frame.Bit(flagSealed, h.Sealed))
	dst = frame.AppendTime(dst, tagAt, h.At)
	return frame.End(dst, start, nil)
}

// ReadHead decodes the head of a message and returns the frames after it.
func ReadHead(msg []byte, log Log) (Head, []byte, error) {
	var h Head
	if len(msg) < 2 {
		return h, nil, frame.ErrShort
	}
	if msg[0] != recordVersion && msg[0] != packedVersion {
		return h, nil, fmt.Errorf("version %d: %w", msg[0], errVersion)
	}
	if h.Log = Log(msg[1]); h.Log != log {
		return h, nil, errLog
	}
	head, _, rest, err := frame.Next(msg[2:])
	if err != nil {
		return h, nil, err
	}
	err = frame.Fields(head, func(tag byte, value string) (err error) {
		switch tag {
		case tagEpoch:
			h.Epoch = frame.Uint(value)
		case tagWriter:
			h.Writer, err = frame.Fixed(value)
		case tagNumber:
			h.Number = frame.Uint(value)
		case tagFirst:
			h.First = frame.Uint(value)
		case tagCount:
			h.Count = frame.Int(value)
		case tagFlags:
			flags := frame.Uint(value)
			h.Opening, h.Sealed = flags&flagOpening != 0, flags&flagSealed != 0
		case tagAt:
			h.At = frame.Time(value)
		}
		return err
	})
	return h, rest, err
}

// eachRecord calls each for every record of a message of the log. plus must be added to the index in
// the record's head.
func eachRecord(msg []byte, log Log, each func(i int, head []byte, plus uint64, payload []byte) error) (Head, error) {
	h, rest, err := ReadHead(msg, log)
	if err != nil {
		return h, err
	}
	n, u := 0, unpacked{packed: msg[0] == packedVersion}
	for ; u.more(rest); n++ {
		var head, payload []byte
		var plus uint64
		if head, plus, payload, rest, err = u.next(rest); err != nil {
			return h, err
		}
		if n >= h.Count {
			return h, errCount
		}
		if err := each(n, head, plus, payload); err != nil {
			return h, err
		}
	}
	if n != h.Count {
		return h, errCount
	}
	return h, nil
}
