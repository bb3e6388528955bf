package journal

import (
	"encoding/binary"

	"github.com/callyard/callyard/pkg/bus/frame"
	"github.com/callyard/callyard/pkg/schema"
)

func appendObject(dst []byte, o *Object) []byte {
	dst = frame.AppendString(dst, tagObject, o.Name)
	dst = frame.AppendString(dst, tagObjectSum, o.SHA256)
	return frame.AppendUint(dst, tagObjectSize, uint64(max(o.Size, 0)))
}

// appendCall appends the frame of a call.
func appendCall(dst []byte, r *CallRecord) []byte {
	dst, start := frame.Begin(dst)
	dst = frame.AppendString(dst, tagID, r.ID)
	dst = frame.AppendString(dst, tagCustomID, r.CustomID)
	dst = frame.AppendString(dst, tagMethod, r.Method)
	dst = frame.AppendString(dst, tagServer, r.Server)
	dst = frame.AppendString(dst, tagTool, r.Tool)
	dst = frame.AppendString(dst, tagToolDigest, r.ToolDigest)
	dst = frame.AppendDuration(dst, tagTimeout, r.Timeout)
	dst = frame.AppendTime(dst, tagExpires, r.Expires)
	dst = frame.AppendTime(dst, tagAccepted, r.Accepted)
	dst = frame.AppendUint(dst, tagMaxAttempts, uint64(max(r.MaxAttempts, 0)))
	dst = frame.AppendString(dst, tagName, r.Principal.Name)
	dst = frame.AppendString(dst, tagOwner, r.Principal.Owner)
	for _, g := range r.Principal.Groups {
		dst = frame.AppendString(dst, tagGroup, g)
	}
	dst = frame.AppendString(dst, tagTenant, r.Principal.Tenant)
	dst = frame.AppendString(dst, tagTraceParent, r.Trace.Parent)
	dst = frame.AppendString(dst, tagTraceState, r.Trace.State)
	dst = frame.AppendString(dst, tagCallbackURL, r.CallbackURL)
	dst = frame.AppendString(dst, tagKey, r.Key)
	dst = frame.AppendString(dst, tagApproval, r.Approval)
	dst = frame.AppendString(dst, tagWarrant, r.Warrant)
	dst = frame.AppendString(dst, tagReplayOf, r.ReplayOf)
	dst = frame.AppendString(dst, tagExtra, r.Extra)
	dst = appendObject(dst, &r.ArgumentsObject)
	dst = frame.AppendUint(dst, tagFlags, frame.Bit(flagSafe, r.Safe)|frame.Bit(flagHeld, r.Held))
	return frame.End(dst, start, r.Arguments)
}

// appendIntent appends the frame of an intent. Its ranges must be ascending and must not touch.
func appendIntent(dst []byte, r *IntentRecord) []byte {
	dst, start := frame.Begin(dst)
	dst = frame.AppendUint(dst, tagAttempt, uint64(max(r.Attempt, 0)))
	dst = frame.AppendString(dst, tagWorker, r.Worker)
	dst = frame.AppendUint(dst, tagFlags, frame.Bit(flagVoid, r.Void))
	var space [64]byte
	ranges, at := space[:0], uint64(0)
	for _, g := range r.Ranges {
		ranges = binary.AppendUvarint(ranges, g.First-at)
		ranges = binary.AppendUvarint(ranges, g.Count)
		at = g.First + g.Count
	}
	return frame.End(dst, start, ranges)
}

// appendResult appends the frame of a result.
func appendResult(dst []byte, r *ResultRecord) []byte {
	dst, start := frame.Begin(dst)
	// The fields that a rebuild needs come first.
	dst = frame.AppendUint(dst, tagIndex, r.Index)
	dst = frame.AppendUint(dst, tagOutcome, uint64(r.Outcome))
	dst = frame.AppendUint(dst, tagAttempt, uint64(max(r.Attempt, 0)))
	payload := r.Body
	if len(r.Error) > 0 {
		payload = r.Error
	}
	dst = frame.AppendUint(dst, tagFlags, frame.Bit(flagToolError, r.ToolError)|frame.Bit(flagInput, r.Input)|frame.Bit(flagError, len(r.Error) > 0))
	dst = frame.AppendUint(dst, tagSettle, uint64(r.Settle))
	dst = frame.AppendString(dst, tagID, r.CallID)
	dst = frame.AppendString(dst, tagCustomID, r.CustomID)
	dst = frame.AppendString(dst, tagWorker, r.Worker)
	dst = frame.AppendTime(dst, tagStarted, r.Started)
	dst = frame.AppendTime(dst, tagEnded, r.Ended)
	dst = frame.AppendString(dst, tagDigest, r.Digest)
	dst = appendObject(dst, &r.BodyObject)
	dst = frame.AppendString(dst, tagTenant, r.Tenant)
	dst = frame.AppendString(dst, tagBy, r.By)
	dst = frame.AppendString(dst, tagReason, r.Reason)
	dst = frame.AppendString(dst, tagRecorded, r.Recorded)
	return frame.End(dst, start, payload)
}

// ReadCalls calls each for every call of a message, in order. The record is reused; its Arguments and
// Warrant share the memory of msg.
func ReadCalls(msg []byte, each func(*CallRecord)) (Head, error) {
	h, _, err := ReadHead(msg, LogCalls)
	if err != nil {
		return h, err
	}
	var r CallRecord
	field := r.field // one closure for all records
	return eachRecord(msg, LogCalls, func(i int, head []byte, _ uint64, payload []byte) error {
		r = CallRecord{Index: h.First + uint64(i)}
		if len(payload) > 0 {
			r.Arguments = payload
		}
		if err := frame.Fields(head, field); err != nil {
			return err
		}
		each(&r)
		return nil
	})
}

func (r *CallRecord) field(tag byte, value string) error {
	switch tag {
	case tagID:
		r.ID = schema.CallID(value)
	case tagCustomID:
		r.CustomID = value
	case tagMethod:
		r.Method = value
	case tagServer:
		r.Server = schema.ServerID(value)
	case tagTool:
		r.Tool = value
	case tagToolDigest:
		r.ToolDigest = value
	case tagTimeout:
		r.Timeout = frame.Duration(value)
	case tagExpires:
		r.Expires = frame.Time(value)
	case tagAccepted:
		r.Accepted = frame.Time(value)
	case tagMaxAttempts:
		r.MaxAttempts = frame.Int(value)
	case tagName:
		r.Principal.Name = value
	case tagOwner:
		r.Principal.Owner = value
	case tagGroup:
		r.Principal.Groups = append(r.Principal.Groups, value)
	case tagTenant:
		r.Principal.Tenant = schema.TenantID(value)
	case tagTraceParent:
		r.Trace.Parent = value
	case tagTraceState:
		r.Trace.State = value
	case tagCallbackURL:
		r.CallbackURL = value
	case tagKey:
		r.Key = value
	case tagApproval:
		r.Approval = value
	case tagWarrant:
		r.Warrant = []byte(value)
	case tagReplayOf:
		r.ReplayOf = schema.CallID(value)
	case tagExtra:
		r.Extra = []byte(value)
	case tagFlags:
		flags := frame.Uint(value)
		r.Safe, r.Held = flags&flagSafe != 0, flags&flagHeld != 0
	default:
		r.ArgumentsObject.field(tag, value)
	}
	return nil
}

func (o *Object) field(tag byte, value string) {
	switch tag {
	case tagObject:
		o.Name = value
	case tagObjectSum:
		o.SHA256 = value
	case tagObjectSize:
		o.Size = frame.Size(value)
	}
}

// readIntents calls each for every intent of a message, in order. The record and its ranges are
// reused.
func readIntents(msg []byte, each func(*IntentRecord)) (Head, error) {
	var r IntentRecord
	return eachRecord(msg, LogIntents, func(_ int, head []byte, _ uint64, payload []byte) error {
		r = IntentRecord{Ranges: r.Ranges[:0]}
		err := frame.Fields(head, func(tag byte, value string) error {
			switch tag {
			case tagAttempt:
				r.Attempt = frame.Int(value)
			case tagWorker:
				r.Worker = schema.WorkerID(value)
			case tagFlags:
				r.Void = frame.Uint(value)&flagVoid != 0
			}
			return nil
		})
		if err != nil {
			return err
		}
		for at := uint64(0); len(payload) > 0; {
			gap, n := binary.Uvarint(payload)
			if n <= 0 {
				return frame.ErrShort
			}
			count, m := binary.Uvarint(payload[n:])
			if m <= 0 {
				return frame.ErrShort
			}
			const most = 1 << 48 // larger than any journal, without overflow in sums
			if gap > most || count > most || count == 0 || at > most {
				return errCount
			}
			r.Ranges = append(r.Ranges, Range{at + gap, count})
			at += gap + count
			payload = payload[n+m:]
		}
		each(&r)
		return nil
	})
}

// ReadResults calls each for every result of a message, in order. The record is reused; its Body and
// Error share the memory of msg.
func ReadResults(msg []byte, each func(*ResultRecord)) (Head, error) {
	var r ResultRecord
	return eachRecord(msg, LogResults, func(_ int, head []byte, plus uint64, payload []byte) error {
		r = ResultRecord{}
		isError := false
		err := frame.Fields(head, func(tag byte, value string) error {
			switch tag {
			case tagIndex:
				r.Index = frame.Uint(value)
			case tagOutcome:
				r.Outcome = Outcome(min(frame.Uint(value), 255))
			case tagAttempt:
				r.Attempt = frame.Int(value)
			case tagFlags:
				flags := frame.Uint(value)
				r.ToolError, r.Input, isError = flags&flagToolError != 0, flags&flagInput != 0, flags&flagError != 0
			case tagSettle:
				r.Settle = Settle(min(frame.Uint(value), 255))
			case tagID:
				r.CallID = schema.CallID(value)
			case tagCustomID:
				r.CustomID = value
			case tagWorker:
				r.Worker = schema.WorkerID(value)
			case tagStarted:
				r.Started = frame.Time(value)
			case tagEnded:
				r.Ended = frame.Time(value)
			case tagDigest:
				r.Digest = value
			case tagTenant:
				r.Tenant = schema.TenantID(value)
			case tagBy:
				r.By = value
			case tagReason:
				r.Reason = value
			case tagRecorded:
				r.Recorded = schema.CallID(value)
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

// Mark holds the fields of a result that a rebuild needs.
type Mark struct {
	Index     uint64
	Outcome   Outcome
	Attempt   int
	ToolError bool
	Settle    Settle
}

// Mark returns the fields of r that a rebuild reads.
func (r *ResultRecord) Mark() Mark {
	return Mark{r.Index, r.Outcome, r.Attempt, r.ToolError, r.Settle}
}

// scanResults calls each with the mark of every result of a message. It does not allocate and skips
// the bodies.
func scanResults(msg []byte, each func(Mark)) (Head, error) {
	return eachRecord(msg, LogResults, func(_ int, head []byte, plus uint64, _ []byte) error {
		m := Mark{}
		for len(head) > 0 {
			tag := head[0]
			size, w := binary.Uvarint(head[1:])
			if w <= 0 || size > uint64(len(head)-1-w) {
				return frame.ErrShort
			}
			value := head[1+w : 1+w+int(size)]
			head = head[1+w+int(size):]
			if tag > tagSettle {
				continue
			}
			v, w := binary.Uvarint(value)
			if w <= 0 {
				v = 0
			}
			switch tag {
			case tagIndex:
				m.Index = v
			case tagOutcome:
				m.Outcome = Outcome(min(v, 255))
			case tagAttempt:
				m.Attempt = int(min(v, 1<<30))
			case tagFlags:
				m.ToolError = v&flagToolError != 0
			case tagSettle:
				m.Settle = Settle(min(v, 255))
			}
		}
		m.Index += plus
		each(m)
		return nil
	})
}
