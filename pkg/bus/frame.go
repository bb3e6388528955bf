package bus

import (
	"errors"
	"fmt"
	"time"

	"github.com/callyard/callyard/pkg/bus/frame"
	"github.com/callyard/callyard/pkg/schema"
)

// The field tags of a frame's head. A tag is never reused with another meaning.
const (
	tagSeq         = 1
	tagID          = 2
	tagMethod      = 3
	tagServer      = 4
	tagTool        = 5
	tagBudget      = 6
	tagPrincipal   = 7
	tagToolDigest  = 8
	tagTraceParent = 9
	tagTraceState  = 10
	tagAttempt     = 11
	tagFlags       = 12
	tagOwner       = 13
	tagGroup       = 14
	tagKind        = 15
	tagWorker      = 16
	tagTook        = 17
	tagTotal       = 18
	tagOffset      = 19
	tagLength      = 20
	tagApproval    = 21
	tagWarrant     = 22
	tagExtra       = 23
	tagSession     = 24
	tagLease       = 25
	tagTenant      = 26
	tagClock       = 27
	tagSeed        = 28
	tagOutcome     = 31
	tagError       = 32
)

const (
	flagProgress  = 1 << 0
	flagSafe      = 1 << 1
	flagToolError = 1 << 2
	flagStarted   = 1 << 3
	flagKeep      = 1 << 4
	flagAnswered  = 1 << 5
	flagInput     = 1 << 6
	flagHears     = 1 << 7
	flagBrief     = 1 << 8
	flagRefused   = 1 << 9
)

// CallFrame is a call that is sent to a worker.
type CallFrame struct {
	// Seq identifies the call between one router and one worker. It is random, so that no
	// other process can answer the call.
	Seq    uint64
	ID     schema.CallID
	Method string // empty means tools/call
	Server schema.ServerID
	Tool   string
	// Budget is the remaining time for the call. It is relative, so that the clocks of the
	// machines need not agree. Zero means the server's default.
	Budget      time.Duration
	Principal   string
	Owner       string
	Groups      []string
	Tenant      schema.TenantID // of the principal, in the form of [schema.TenantID.Stored]
	ToolDigest  string
	TraceParent string
	TraceState  string
	Attempt     int
	Progress    bool
	Safe        bool
	// Keep asks the worker to remember the outcome of the call; see [Outcome].
	Keep bool
	// Brief asks the worker to remember the outcome for a few seconds, in case the reply is
	// lost.
	Brief    bool
	Approval schema.ApprovalID
	// Warrant is the signed proof of the approval, which the worker verifies against the
	// call. It is empty if the call did not require approval.
	Warrant []byte
	// Extra and Session are those of [schema.Call]. Hears means that the caller receives
	// messages of the server, so that [ReplySaid] may be sent.
	Extra   []byte
	Session string
	Hears   bool
	// Clock and Seed are those of [schema.Call].
	Clock, Seed string
	// Lease is [schema.Lease.ID] of the call.
	Lease   string
	Payload []byte
	// Bulk means that no caller waits for this single call, so that it may wait a moment to
	// share a message with others. It is not sent.
	Bulk bool
	// More means that another call follows in the same message, so that a worker can process
	// them together. It is not sent; the reader sets it.
	More bool
}

// ReplyKind is the kind of a reply frame.
type ReplyKind byte

const (
	// ReplyResult: Payload is the whole result.
	ReplyResult ReplyKind = 1
	// ReplyError: Payload is a schema.Error as JSON. Started reports whether the request may
	// have reached the MCP server.
	ReplyError ReplyKind = 2
	// ReplyProgress: Payload is the params object of a progress notification.
	ReplyProgress ReplyKind = 3
	// ReplyFirst: Payload is the beginning of a result of Total bytes. The rest follows as
	// ReplyPart frames after it was granted.
	ReplyFirst ReplyKind = 4
	// ReplyPart: Payload is the part of the result at Offset.
	ReplyPart ReplyKind = 5
	// ReplySaid: Payload is a request or notification of the MCP server to the caller, a JSON
	// object with method and params. For a request, Offset is its number, which is also its
	// member id, and the response is a [ControlAnswer]. For a notification, Offset is zero.
	ReplySaid ReplyKind = 8
	// ReplyNobody is never sent. The client creates it if no worker listened, which proves
	// that the call did not start.
	ReplyNobody ReplyKind = 6
	// ReplyLost is never sent. The client creates it if the worker is known to be
	// disconnected. The call may have run or not.
	ReplyLost ReplyKind = 7
)

// ReplyFrame is a message from a worker about one call.
type ReplyFrame struct {
	Seq       uint64
	Kind      ReplyKind
	Worker    schema.WorkerID
	Took      time.Duration
	ToolError bool
	// Input means that the result requests input; see [schema.Result.InputRequired].
	Input   bool
	Started bool
	Total   int64
	Offset  int64
	Payload []byte
}

// ControlKind is the kind of a control frame.
type ControlKind byte

const (
	// ControlCancel cancels the call Seq.
	ControlCancel ControlKind = 1
	// ControlGrant requests Length bytes of the result of Seq, starting at Offset.
	ControlGrant ControlKind = 2
	// ControlForget discards the rest of the result of Seq.
	ControlForget ControlKind = 3
	// ControlAnswer answers the server's request with the number Offset in the call Seq.
	// Payload is a JSON object with result or error.
	ControlAnswer ControlKind = 4
)

// ControlFrame is a message from a router about a call that a worker has.
type ControlFrame struct {
	Kind    ControlKind
	Seq     uint64
	Offset  int64
	Length  int64
	Payload []byte
}

// beginFrame begins a frame. If dst is empty, it first writes the version byte.
func beginFrame(dst []byte) ([]byte, int) {
	if len(dst) == 0 {
		dst = append(dst, wireVersion)
	}
	return frame.Begin(dst)
}

// AppendCall appends f to dst, which is empty or contains earlier frames, and returns the
// extended message.
func AppendCall(dst []byte, f *CallFrame) []byte {
	dst, start := beginFrame(dst)
	dst = frame.AppendFixed(dst, tagSeq, f.Seq)
	dst = frame.AppendString(dst, tagID, f.ID)
	dst = frame.AppendString(dst, tagMethod, f.Method)
	dst = frame.AppendString(dst, tagServer, f.Server)
	dst = frame.AppendString(dst, tagTool, f.Tool)
	dst = frame.AppendDuration(dst, tagBudget, f.Budget)
	dst = frame.AppendString(dst, tagPrincipal, f.Principal)
	dst = frame.AppendString(dst, tagOwner, f.Owner)
	for _, g := range f.Groups {
		dst = frame.AppendString(dst, tagGroup, g)
	}
	dst = frame.AppendString(dst, tagTenant, f.Tenant)
	dst = frame.AppendString(dst, tagToolDigest, f.ToolDigest)
	dst = frame.AppendString(dst, tagTraceParent, f.TraceParent)
	dst = frame.AppendString(dst, tagTraceState, f.TraceState)
	dst = frame.AppendString(dst, tagApproval, f.Approval)
	dst = frame.AppendString(dst, tagWarrant, f.Warrant)
	dst = frame.AppendString(dst, tagExtra, f.Extra)
	dst = frame.AppendString(dst, tagSession, f.Session)
	dst = frame.AppendString(dst, tagClock, f.Clock)
	dst = frame.AppendString(dst, tagSeed, f.Seed)
	dst = frame.AppendString(dst, tagLease, f.Lease)
	dst = frame.AppendUint(dst, tagAttempt, uint64(max(f.Attempt, 0)))
	dst = frame.AppendUint(dst, tagFlags, frame.Bit(flagProgress, f.Progress)|frame.Bit(flagSafe, f.Safe)|
		frame.Bit(flagKeep, f.Keep)|frame.Bit(flagHears, f.Hears)|frame.Bit(flagBrief, f.Brief))
	return frame.End(dst, start, f.Payload)
}

// AppendReply appends f to dst as [AppendCall] does.
func AppendReply(dst []byte, f *ReplyFrame) []byte {
	dst, start := beginFrame(dst)
	dst = frame.AppendFixed(dst, tagSeq, f.Seq)
	dst = frame.AppendUint(dst, tagKind, uint64(f.Kind))
	dst = frame.AppendString(dst, tagWorker, f.Worker)
	dst = frame.AppendDuration(dst, tagTook, f.Took)
	dst = frame.AppendUint(dst, tagFlags, frame.Bit(flagToolError, f.ToolError)|frame.Bit(flagStarted, f.Started)|frame.Bit(flagInput, f.Input))
	dst = frame.AppendUint(dst, tagTotal, uint64(f.Total))
	dst = frame.AppendUint(dst, tagOffset, uint64(f.Offset))
	return frame.End(dst, start, f.Payload)
}

// AppendControl appends f to dst as [AppendCall] does.
func AppendControl(dst []byte, f *ControlFrame) []byte {
	dst, start := beginFrame(dst)
	dst = frame.AppendFixed(dst, tagSeq, f.Seq)
	dst = frame.AppendUint(dst, tagKind, uint64(f.Kind))
	dst = frame.AppendUint(dst, tagOffset, uint64(f.Offset))
	dst = frame.AppendUint(dst, tagLength, uint64(f.Length))
	return frame.End(dst, start, f.Payload)
}

// errVersion and [frame.ErrShort] are the errors of the readers. The receiving side drops such
// a message as a whole, because the frames in it cannot be attributed to calls.
var errVersion = errors.New("the message has a different wire version: upgrade the older side, or configure both to use the older version")

// frames calls each with the head and the payload of every frame of msg, in order. It stops at
// the first error of each.
func frames(msg []byte, each func(head, payload []byte) error) error {
	if len(msg) == 0 {
		return frame.ErrShort
	}
	if msg[0] != wireVersion {
		return fmt.Errorf("version %d: %w", msg[0], errVersion)
	}
	for rest := msg[1:]; len(rest) > 0; {
		head, payload, after, err := frame.Next(rest)
		if err != nil {
			return err
		}
		if err := each(head, payload); err != nil {
			return err
		}
		rest = after
	}
	return nil
}

// ReadCalls calls each with every call of msg, in order. The frame and its payload share the
// memory of msg, so msg must not be changed afterwards.
func ReadCalls(msg []byte, each func(*CallFrame)) error {
	var last *CallFrame
	err := frames(msg, func(head, payload []byte) error {
		f := &CallFrame{Payload: payload}
		err := frame.Fields(head, func(tag byte, value string) (err error) {
			switch tag {
			case tagSeq:
				f.Seq, err = frame.Fixed(value)
			case tagID:
				f.ID = schema.CallID(value)
			case tagMethod:
				f.Method = value
			case tagServer:
				f.Server = schema.ServerID(value)
			case tagTool:
				f.Tool = value
			case tagBudget:
				f.Budget = frame.Duration(value)
			case tagPrincipal:
				f.Principal = value
			case tagOwner:
				f.Owner = value
			case tagGroup:
				f.Groups = append(f.Groups, value)
			case tagTenant:
				f.Tenant = schema.TenantID(value)
			case tagToolDigest:
				f.ToolDigest = value
			case tagTraceParent:
				f.TraceParent = value
			case tagTraceState:
				f.TraceState = value
			case tagApproval:
				f.Approval = schema.ApprovalID(value)
			case tagWarrant:
				f.Warrant = []byte(value)
			case tagExtra:
				f.Extra = []byte(value)
			case tagSession:
				f.Session = value
			case tagClock:
				f.Clock = value
			case tagSeed:
				f.Seed = value
			case tagLease:
				f.Lease = value
			case tagAttempt:
				f.Attempt = frame.Int(value)
			case tagFlags:
				flags := frame.Uint(value)
				f.Progress, f.Safe, f.Keep, f.Hears = flags&flagProgress != 0, flags&flagSafe != 0, flags&flagKeep != 0, flags&flagHears != 0
				f.Brief = flags&flagBrief != 0
			}
			return err
		})
		if err != nil {
			return err
		}
		if last != nil {
			last.More = true
			each(last)
		}
		last = f
		return nil
	})
	if last != nil {
		each(last)
	}
	return err
}

// ReadReplies calls each with every reply of msg, like [ReadCalls]. The frame is reused, so each
// must copy the fields that it keeps, except the payload.
func ReadReplies(msg []byte, each func(*ReplyFrame)) error {
	return decode(msg, func(payload []byte) ReplyFrame { return ReplyFrame{Payload: payload} }, (*ReplyFrame).field, each)
}

// ReadControls calls each with every control frame of msg, like [ReadReplies].
func ReadControls(msg []byte, each func(*ControlFrame)) error {
	return decode(msg, func(payload []byte) (f ControlFrame) {
		if len(payload) > 0 {
			f.Payload = payload
		}
		return f
	}, (*ControlFrame).field, each)
}

// decode calls each with every frame of msg. blank returns the initial frame, and take sets a
// field of it.
func decode[F any](msg []byte, blank func(payload []byte) F, take func(f *F, tag byte, value string) error, each func(*F)) error {
	var f F
	field := func(tag byte, value string) error { return take(&f, tag, value) }
	return frames(msg, func(head, payload []byte) error {
		f = blank(payload)
		if err := frame.Fields(head, field); err != nil {
			return err
		}
		each(&f)
		return nil
	})
}

func (f *ReplyFrame) field(tag byte, value string) (err error) {
	switch tag {
	case tagSeq:
		f.Seq, err = frame.Fixed(value)
	case tagKind:
		f.Kind = ReplyKind(frame.Uint(value))
	case tagWorker:
		f.Worker = schema.WorkerID(value)
	case tagTook:
		f.Took = frame.Duration(value)
	case tagTotal:
		f.Total = frame.Size(value)
	case tagOffset:
		f.Offset = frame.Size(value)
	case tagFlags:
		flags := frame.Uint(value)
		f.ToolError, f.Started, f.Input = flags&flagToolError != 0, flags&flagStarted != 0, flags&flagInput != 0
	}
	return err
}

func (f *ControlFrame) field(tag byte, value string) (err error) {
	switch tag {
	case tagSeq:
		f.Seq, err = frame.Fixed(value)
	case tagKind:
		f.Kind = ControlKind(frame.Uint(value))
	case tagOffset:
		f.Offset = frame.Size(value)
	case tagLength:
		f.Length = frame.Size(value)
	}
	return err
}
