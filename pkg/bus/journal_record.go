package bus

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// A stored message of a journal holds one version byte, one byte that names the
// log, and frames as doc.go describes them: first the head of the message, without
// a payload, then one frame for each record. The version is the journal's own:
// what is stored outlives what is on the wire.
const journalVersion = 1

// JournalLog names one of the logs of a journal. A number is never given a second
// meaning.
type JournalLog byte

const (
	JournalCalls   JournalLog = 1
	JournalIntents JournalLog = 2
	JournalResults JournalLog = 3
)

// Field tags of the heads. A tag is never given a second meaning; 0 is no tag.
const (
	jEpoch       = 1
	jWriter      = 2
	jNumber      = 3
	jFirst       = 4
	jCount       = 5
	jFlags       = 6
	jAt          = 7
	jIndex       = 8
	jOutcome     = 9
	jAttempt     = 10
	jSettle      = 11
	jID          = 12
	jCustomID    = 13
	jMethod      = 14
	jServer      = 15
	jTool        = 16
	jToolDigest  = 17
	jTimeout     = 18
	jExpires     = 19
	jAccepted    = 20
	jMaxAttempts = 21
	jName        = 22
	jOwner       = 23
	jGroup       = 24
	jTraceParent = 25
	jTraceState  = 26
	jCallbackURL = 27
	jKey         = 28
	jApproval    = 29
	jWarrant     = 30
	jObject      = 31
	jObjectSum   = 32
	jObjectSize  = 33
	jWorker      = 34
	jStarted     = 35
	jEnded       = 36
	jDigest      = 37
	jBy          = 38
	jReason      = 39
	jExtra       = 40
)

const (
	jfOpening   = 1 << 0 // of a message: its writer took the log over
	jfSealed    = 1 << 1 // of a message: none comes after it
	jfSafe      = 1 << 2
	jfHeld      = 1 << 3
	jfVoid      = 1 << 4
	jfToolError = 1 << 5
	jfError     = 1 << 6 // the payload is an error
	jfInput     = 1 << 7
)

// JournalHead is what a message says of itself.
type JournalHead struct {
	Log JournalLog
	// Epoch only grows along a log. Writer is random for each writer, and Number
	// counts its messages, so that a writer knows its own message again.
	Epoch, Writer, Number uint64
	// First is how many records the log holds before this message: of calls it is
	// the index of the first one here.
	First uint64
	// Count is how many records follow.
	Count int
	// Opening: the writer took the log over with this message. Sealed: it is the last.
	Opening, Sealed bool
	// At is when it was written, by the writer's clock.
	At time.Time
}

// Errors of the readers of stored records.
var (
	errJournalVersion = errors.New("the journal was written by another version: use that one to finish it, or a newer one that reads it")
	errJournalLog     = errors.New("the message is of another log")
	errJournalCount   = errors.New("the message does not hold the records it says it holds")
)

func beginRecord(dst []byte) ([]byte, int) {
	return append(dst, 0, 0, 0, 0, 0, 0, 0, 0), len(dst)
}

func endRecord(dst []byte, start int, payload []byte) []byte {
	binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start-frameOverhead))
	binary.BigEndian.PutUint32(dst[start+4:], uint32(len(payload)))
	return append(dst, payload...)
}

func appendTime(dst []byte, tag byte, t time.Time) []byte {
	if t.IsZero() {
		return dst
	}
	return appendUint(dst, tag, uint64(max(t.UnixNano(), 1)))
}

func appendBytes(dst []byte, tag byte, b []byte) []byte {
	if len(b) == 0 {
		return dst
	}
	dst = append(dst, tag)
	dst = binary.AppendUvarint(dst, uint64(len(b)))
	return append(dst, b...)
}

func appendObject(dst []byte, o *JournalObject) []byte {
	dst = appendString(dst, jObject, o.Name)
	dst = appendString(dst, jObjectSum, o.SHA256)
	return appendUint(dst, jObjectSize, uint64(max(o.Size, 0)))
}

// AppendJournalHead begins a message: dst must be empty. The frames of Count
// records have to follow.
func AppendJournalHead(dst []byte, h *JournalHead) []byte {
	dst = append(dst, journalVersion, byte(h.Log))
	dst, start := beginRecord(dst)
	dst = appendUint(dst, jEpoch, h.Epoch)
	dst = append(dst, jWriter, 8)
	dst = binary.BigEndian.AppendUint64(dst, h.Writer)
	dst = appendUint(dst, jNumber, h.Number)
	dst = appendUint(dst, jFirst, h.First)
	dst = appendUint(dst, jCount, uint64(max(h.Count, 0)))
	var flags uint64
	if h.Opening {
		flags |= jfOpening
	}
	if h.Sealed {
		flags |= jfSealed
	}
	dst = appendUint(dst, jFlags, flags)
	dst = appendTime(dst, jAt, h.At)
	return endRecord(dst, start, nil)
}

// AppendJournalCall appends the frame of a call.
func AppendJournalCall(dst []byte, r *JournalCall) []byte {
	dst, start := beginRecord(dst)
	dst = appendString(dst, jID, r.ID)
	dst = appendString(dst, jCustomID, r.CustomID)
	dst = appendString(dst, jMethod, r.Method)
	dst = appendString(dst, jServer, r.Server)
	dst = appendString(dst, jTool, r.Tool)
	dst = appendString(dst, jToolDigest, r.ToolDigest)
	dst = appendUint(dst, jTimeout, durationToWire(r.Timeout))
	dst = appendTime(dst, jExpires, r.Expires)
	dst = appendTime(dst, jAccepted, r.Accepted)
	dst = appendUint(dst, jMaxAttempts, uint64(max(r.MaxAttempts, 0)))
	dst = appendString(dst, jName, r.Principal.Name)
	dst = appendString(dst, jOwner, r.Principal.Owner)
	for _, g := range r.Principal.Groups {
		dst = appendString(dst, jGroup, g)
	}
	dst = appendString(dst, jTraceParent, r.Trace.Parent)
	dst = appendString(dst, jTraceState, r.Trace.State)
	dst = appendString(dst, jCallbackURL, r.CallbackURL)
	dst = appendString(dst, jKey, r.Key)
	dst = appendString(dst, jApproval, r.Approval)
	dst = appendBytes(dst, jWarrant, r.Warrant)
	dst = appendBytes(dst, jExtra, r.Extra)
	dst = appendObject(dst, &r.ArgumentsObject)
	var flags uint64
	if r.Safe {
		flags |= jfSafe
	}
	if r.Held {
		flags |= jfHeld
	}
	dst = appendUint(dst, jFlags, flags)
	return endRecord(dst, start, r.Arguments)
}

// AppendJournalIntent appends the frame of an intent. Its ranges must ascend and
// not touch.
func AppendJournalIntent(dst []byte, r *JournalIntent) []byte {
	dst, start := beginRecord(dst)
	dst = appendUint(dst, jAttempt, uint64(max(r.Attempt, 0)))
	dst = appendString(dst, jWorker, r.Worker)
	if r.Void {
		dst = appendUint(dst, jFlags, jfVoid)
	}
	var room [64]byte
	ranges, at := room[:0], uint64(0)
	for _, g := range r.Ranges {
		ranges = binary.AppendUvarint(ranges, g.First-at)
		ranges = binary.AppendUvarint(ranges, g.Count)
		at = g.First + g.Count
	}
	return endRecord(dst, start, ranges)
}

// AppendJournalResult appends the frame of a result.
func AppendJournalResult(dst []byte, r *JournalResult) []byte {
	dst, start := beginRecord(dst)
	// What a rebuild needs comes first.
	dst = appendUint(dst, jIndex, r.Index)
	dst = appendUint(dst, jOutcome, uint64(r.Outcome))
	dst = appendUint(dst, jAttempt, uint64(max(r.Attempt, 0)))
	var flags uint64
	if r.ToolError {
		flags |= jfToolError
	}
	if r.Input {
		flags |= jfInput
	}
	payload := r.Body
	if len(r.Error) > 0 {
		flags |= jfError
		payload = r.Error
	}
	dst = appendUint(dst, jFlags, flags)
	dst = appendUint(dst, jSettle, uint64(r.Settle))
	dst = appendString(dst, jID, r.CallID)
	dst = appendString(dst, jCustomID, r.CustomID)
	dst = appendString(dst, jWorker, r.Worker)
	dst = appendTime(dst, jStarted, r.Started)
	dst = appendTime(dst, jEnded, r.Ended)
	dst = appendString(dst, jDigest, r.Digest)
	dst = appendObject(dst, &r.BodyObject)
	dst = appendString(dst, jBy, r.By)
	dst = appendString(dst, jReason, r.Reason)
	return endRecord(dst, start, payload)
}

// nextRecord splits the first frame off rest.
func nextRecord(rest []byte) (head, payload, after []byte, err error) {
	if len(rest) < frameOverhead {
		return nil, nil, nil, errShort
	}
	h, p := uint64(binary.BigEndian.Uint32(rest)), uint64(binary.BigEndian.Uint32(rest[4:]))
	rest = rest[frameOverhead:]
	if h+p > uint64(len(rest)) {
		return nil, nil, nil, errShort
	}
	return rest[:h:h], rest[h : h+p : h+p], rest[h+p:], nil
}

// ReadJournalHead reads the head of a message and returns the frames after it.
func ReadJournalHead(msg []byte, log JournalLog) (JournalHead, []byte, error) {
	var h JournalHead
	if len(msg) < 2 {
		return h, nil, errShort
	}
	if msg[0] != journalVersion && msg[0] != packedVersion {
		return h, nil, fmt.Errorf("version %d: %w", msg[0], errJournalVersion)
	}
	if h.Log = JournalLog(msg[1]); h.Log != log {
		return h, nil, errJournalLog
	}
	head, _, rest, err := nextRecord(msg[2:])
	if err != nil {
		return h, nil, err
	}
	err = fields(head, func(tag byte, value string) (err error) {
		switch tag {
		case jEpoch:
			h.Epoch = number(value)
		case jWriter:
			h.Writer, err = sequence(value)
		case jNumber:
			h.Number = number(value)
		case jFirst:
			h.First = number(value)
		case jCount:
			h.Count = int(min(number(value), 1<<30))
		case jFlags:
			flags := number(value)
			h.Opening, h.Sealed = flags&jfOpening != 0, flags&jfSealed != 0
		case jAt:
			h.At = timeFrom(number(value))
		}
		return err
	})
	return h, rest, err
}

func timeFrom(v uint64) time.Time {
	if v == 0 || v > 1<<63-1 {
		return time.Time{}
	}
	return time.Unix(0, int64(v)).UTC()
}

// journalRecords calls each with every record of a message of the log.
// plus is how far the index of a record is behind the one in its head.
func journalRecords(msg []byte, log JournalLog, each func(i int, head []byte, plus uint64, payload []byte) error) (JournalHead, error) {
	h, rest, err := ReadJournalHead(msg, log)
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
			return h, errJournalCount
		}
		if err := each(n, head, plus, payload); err != nil {
			return h, err
		}
	}
	if n != h.Count {
		return h, errJournalCount
	}
	return h, nil
}

// ReadJournalCalls calls each with every call of a message, in order. The record is
// reused; its Arguments and Warrant share the memory of msg.
func ReadJournalCalls(msg []byte, each func(*JournalCall)) (JournalHead, error) {
	h, _, err := ReadJournalHead(msg, JournalCalls)
	if err != nil {
		return h, err
	}
	var r JournalCall
	field := r.field // one closure for all
	return journalRecords(msg, JournalCalls, func(i int, head []byte, _ uint64, payload []byte) error {
		r = JournalCall{Index: h.First + uint64(i)}
		if len(payload) > 0 {
			r.Arguments = payload
		}
		if err := fields(head, field); err != nil {
			return err
		}
		each(&r)
		return nil
	})
}

func (r *JournalCall) field(tag byte, value string) error {
	switch tag {
	case jID:
		r.ID = value
	case jCustomID:
		r.CustomID = value
	case jMethod:
		r.Method = value
	case jServer:
		r.Server = value
	case jTool:
		r.Tool = value
	case jToolDigest:
		r.ToolDigest = value
	case jTimeout:
		r.Timeout = durationFromWire(number(value))
	case jExpires:
		r.Expires = timeFrom(number(value))
	case jAccepted:
		r.Accepted = timeFrom(number(value))
	case jMaxAttempts:
		r.MaxAttempts = int(min(number(value), 1<<30))
	case jName:
		r.Principal.Name = value
	case jOwner:
		r.Principal.Owner = value
	case jGroup:
		r.Principal.Groups = append(r.Principal.Groups, value)
	case jTraceParent:
		r.Trace.Parent = value
	case jTraceState:
		r.Trace.State = value
	case jCallbackURL:
		r.CallbackURL = value
	case jKey:
		r.Key = value
	case jApproval:
		r.Approval = value
	case jWarrant:
		r.Warrant = []byte(value)
	case jExtra:
		r.Extra = []byte(value)
	case jFlags:
		flags := number(value)
		r.Safe, r.Held = flags&jfSafe != 0, flags&jfHeld != 0
	default:
		r.ArgumentsObject.field(tag, value)
	}
	return nil
}

func (o *JournalObject) field(tag byte, value string) {
	switch tag {
	case jObject:
		o.Name = value
	case jObjectSum:
		o.SHA256 = value
	case jObjectSize:
		o.Size = size(value)
	}
}

// ReadJournalIntents calls each with every intent of a message, in order. The
// record and its ranges are reused.
func ReadJournalIntents(msg []byte, each func(*JournalIntent)) (JournalHead, error) {
	var r JournalIntent
	return journalRecords(msg, JournalIntents, func(_ int, head []byte, _ uint64, payload []byte) error {
		r = JournalIntent{Ranges: r.Ranges[:0]}
		err := fields(head, func(tag byte, value string) error {
			switch tag {
			case jAttempt:
				r.Attempt = int(min(number(value), 1<<30))
			case jWorker:
				r.Worker = value
			case jFlags:
				r.Void = number(value)&jfVoid != 0
			}
			return nil
		})
		if err != nil {
			return err
		}
		for at := uint64(0); len(payload) > 0; {
			gap, n := binary.Uvarint(payload)
			if n <= 0 {
				return errShort
			}
			count, m := binary.Uvarint(payload[n:])
			if m <= 0 {
				return errShort
			}
			const most = 1 << 48 // far above any journal, and sums stay in range
			if gap > most || count > most || count == 0 || at > most {
				return errJournalCount
			}
			r.Ranges = append(r.Ranges, JournalRange{at + gap, count})
			at += gap + count
			payload = payload[n+m:]
		}
		each(&r)
		return nil
	})
}

// ReadJournalResults calls each with every result of a message, in order. The
// record is reused; its Body and Error share the memory of msg.
func ReadJournalResults(msg []byte, each func(*JournalResult)) (JournalHead, error) {
	var r JournalResult
	return journalRecords(msg, JournalResults, func(_ int, head []byte, plus uint64, payload []byte) error {
		r = JournalResult{}
		isError := false
		err := fields(head, func(tag byte, value string) error {
			switch tag {
			case jIndex:
				r.Index = number(value)
			case jOutcome:
				r.Outcome = JournalOutcome(min(number(value), 255))
			case jAttempt:
				r.Attempt = int(min(number(value), 1<<30))
			case jFlags:
				flags := number(value)
				r.ToolError, r.Input, isError = flags&jfToolError != 0, flags&jfInput != 0, flags&jfError != 0
			case jSettle:
				r.Settle = JournalSettle(min(number(value), 255))
			case jID:
				r.CallID = value
			case jCustomID:
				r.CustomID = value
			case jWorker:
				r.Worker = value
			case jStarted:
				r.Started = timeFrom(number(value))
			case jEnded:
				r.Ended = timeFrom(number(value))
			case jDigest:
				r.Digest = value
			case jBy:
				r.By = value
			case jReason:
				r.Reason = value
			default:
				r.BodyObject.field(tag, value)
			}
			return nil
		})
		if err != nil {
			return err
		}
		r.Index += plus
		switch {
		case len(payload) == 0:
		case isError:
			r.Error = payload
		default:
			r.Body = payload
		}
		each(&r)
		return nil
	})
}

// JournalMark is what a rebuild needs of a result.
type JournalMark struct {
	Index     uint64
	Outcome   JournalOutcome
	Attempt   int
	ToolError bool
	Settle    JournalSettle
}

// Mark is what a rebuild would read of r.
func (r *JournalResult) Mark() JournalMark {
	return JournalMark{r.Index, r.Outcome, r.Attempt, r.ToolError, r.Settle}
}

// ScanJournalResults calls each with the mark of every result of a message. It
// makes no garbage and does not look at the bodies.
func ScanJournalResults(msg []byte, each func(JournalMark)) (JournalHead, error) {
	h, rest, err := ReadJournalHead(msg, JournalResults)
	if err != nil {
		return h, err
	}
	n, u := 0, unpacked{packed: msg[0] == packedVersion}
	for ; u.more(rest); n++ {
		var head []byte
		var plus uint64
		if head, plus, _, rest, err = u.next(rest); err != nil {
			return h, err
		}
		if n >= h.Count {
			return h, errJournalCount
		}
		var m JournalMark
		for len(head) > 0 {
			tag := head[0]
			size, w := binary.Uvarint(head[1:])
			if w <= 0 || size > uint64(len(head)-1-w) {
				return h, errShort
			}
			value := head[1+w : 1+w+int(size)]
			head = head[1+w+int(size):]
			if tag > jSettle {
				continue
			}
			v, w := binary.Uvarint(value)
			if w <= 0 {
				v = 0
			}
			switch tag {
			case jIndex:
				m.Index = v
			case jOutcome:
				m.Outcome = JournalOutcome(min(v, 255))
			case jAttempt:
				m.Attempt = int(min(v, 1<<30))
			case jFlags:
				m.ToolError = v&jfToolError != 0
			case jSettle:
				m.Settle = JournalSettle(min(v, 255))
			}
		}
		m.Index += plus
		each(m)
	}
	if n != h.Count {
		return h, errJournalCount
	}
	return h, nil
}
