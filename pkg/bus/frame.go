package bus

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

const frameOverhead = 8

// Field tags of a frame's head. A tag is never given a second meaning.
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
	tagFate        = 31
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

// CallFrame is a call on its way to a worker.
type CallFrame struct {
	// Seq names the call between one router and one worker; it is random, so
	// that nobody else can answer it.
	Seq    uint64
	ID     string
	Method string // empty: tools/call
	Server string
	Tool   string
	// Budget is how long the call may take from now on. It is relative, so
	// that clocks of different machines need not agree. Zero: the server's own.
	Budget      time.Duration
	Principal   string
	Owner       string
	Groups      []string
	ToolDigest  string
	TraceParent string
	TraceState  string
	Attempt     int
	Progress    bool
	Safe        bool
	// Keep asks the worker to remember how the call ended; see [Fate].
	Keep bool
	// Brief asks the worker to remember that for a few seconds, for the case that the
	// answer is lost on its way.
	Brief    bool
	Approval string
	// Warrant is the signed proof that the approval was given, which the worker
	// holds against the call; empty for a call that needed none.
	Warrant []byte
	// Extra is [schema.Call].Extra, Session its Session, and Hears says that what
	// the server says by itself is heard: [ReplySaid] may be sent.
	Extra   []byte
	Session string
	Hears   bool
	Payload []byte
	// Bulk says that nobody waits for this single call, so that it may wait a
	// moment for others to share a message with. It does not travel.
	Bulk bool
	// More says that another call follows in the same message. It does not travel:
	// the reader sets it, so that a worker can hand such calls on together.
	More bool
}

// ReplyKind says what a reply frame carries.
type ReplyKind byte

const (
	// ReplyResult: Payload is the whole result.
	ReplyResult ReplyKind = 1
	// ReplyError: Payload is a schema.Error as JSON. Started says whether the
	// request may have reached the MCP server.
	ReplyError ReplyKind = 2
	// ReplyProgress: Payload is the params object of a progress notification.
	ReplyProgress ReplyKind = 3
	// ReplyFirst: Payload is the beginning of a result of Total bytes; the rest
	// comes as ReplyPart frames once it was granted.
	ReplyFirst ReplyKind = 4
	// ReplyPart: Payload is the part of the result that begins at Offset.
	ReplyPart ReplyKind = 5
	// ReplySaid: Payload is what the MCP server says to the caller by itself, a JSON
	// object with method and params. Offset numbers a request, whose answer comes
	// back as [ControlAnswer]; it is zero for a notification.
	ReplySaid ReplyKind = 8
	// ReplyNobody never travels: the client makes it when no worker listened,
	// which proves that the call did not start.
	ReplyNobody ReplyKind = 6
	// ReplyLost never travels: the client makes it when the worker is known to
	// be gone, which proves nothing about the call.
	ReplyLost ReplyKind = 7
)

// ReplyFrame is a word from a worker about one call.
type ReplyFrame struct {
	Seq       uint64
	Kind      ReplyKind
	Worker    string
	Took      time.Duration
	ToolError bool
	// Input says that the result is a question; see [schema.Result].
	Input   bool
	Started bool
	Total   int64
	Offset  int64
	Payload []byte
}

// ControlKind says what a control frame asks of a worker.
type ControlKind byte

const (
	// ControlCancel: end the call Seq.
	ControlCancel ControlKind = 1
	// ControlGrant: send Length bytes of the result of Seq from Offset on.
	ControlGrant ControlKind = 2
	// ControlForget: the rest of the result of Seq is not wanted.
	ControlForget ControlKind = 3
	// ControlAnswer: Payload, a JSON object with result or error, answers the
	// request that the server made with the number Offset in the call Seq.
	ControlAnswer ControlKind = 4
)

// ControlFrame is a router's word about a call that a worker holds.
type ControlFrame struct {
	Kind    ControlKind
	Seq     uint64
	Offset  int64
	Length  int64
	Payload []byte
}

func beginFrame(dst []byte, payload int) ([]byte, int) {
	if len(dst) == 0 {
		dst = append(dst, wireVersion)
	}
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0)
	binary.BigEndian.PutUint32(dst[start+4:], uint32(payload))
	return dst, start
}

func endFrame(dst []byte, start int, payload []byte) []byte {
	binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start-frameOverhead))
	return append(dst, payload...)
}

func appendString(dst []byte, tag byte, s string) []byte {
	if s == "" {
		return dst
	}
	dst = append(dst, tag)
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}

func appendUint(dst []byte, tag byte, v uint64) []byte {
	if v == 0 {
		return dst
	}
	var tmp [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(tmp[:], v)
	dst = append(dst, tag, byte(n))
	return append(dst, tmp[:n]...)
}

func appendSeq(dst []byte, seq uint64) []byte {
	dst = append(dst, tagSeq, 8)
	return binary.BigEndian.AppendUint64(dst, seq)
}

// AppendCall appends f to dst, which is empty or holds earlier frames, and
// returns the extended message.
func AppendCall(dst []byte, f *CallFrame) []byte {
	dst, start := beginFrame(dst, len(f.Payload))
	dst = appendSeq(dst, f.Seq)
	dst = appendString(dst, tagID, f.ID)
	dst = appendString(dst, tagMethod, f.Method)
	dst = appendString(dst, tagServer, f.Server)
	dst = appendString(dst, tagTool, f.Tool)
	dst = appendUint(dst, tagBudget, durationToWire(f.Budget))
	dst = appendString(dst, tagPrincipal, f.Principal)
	dst = appendString(dst, tagOwner, f.Owner)
	for _, g := range f.Groups {
		dst = appendString(dst, tagGroup, g)
	}
	dst = appendString(dst, tagToolDigest, f.ToolDigest)
	dst = appendString(dst, tagTraceParent, f.TraceParent)
	dst = appendString(dst, tagTraceState, f.TraceState)
	dst = appendString(dst, tagApproval, f.Approval)
	dst = appendBytes(dst, tagWarrant, f.Warrant)
	dst = appendBytes(dst, tagExtra, f.Extra)
	dst = appendString(dst, tagSession, f.Session)
	dst = appendUint(dst, tagAttempt, uint64(max(f.Attempt, 0)))
	var flags uint64
	if f.Progress {
		flags |= flagProgress
	}
	if f.Safe {
		flags |= flagSafe
	}
	if f.Keep {
		flags |= flagKeep
	}
	if f.Hears {
		flags |= flagHears
	}
	if f.Brief {
		flags |= flagBrief
	}
	dst = appendUint(dst, tagFlags, flags)
	return endFrame(dst, start, f.Payload)
}

// AppendReply appends f to dst as [AppendCall] does.
func AppendReply(dst []byte, f *ReplyFrame) []byte {
	dst, start := beginFrame(dst, len(f.Payload))
	dst = appendSeq(dst, f.Seq)
	dst = appendUint(dst, tagKind, uint64(f.Kind))
	dst = appendString(dst, tagWorker, f.Worker)
	dst = appendUint(dst, tagTook, durationToWire(f.Took))
	var flags uint64
	if f.ToolError {
		flags |= flagToolError
	}
	if f.Started {
		flags |= flagStarted
	}
	if f.Input {
		flags |= flagInput
	}
	dst = appendUint(dst, tagFlags, flags)
	dst = appendUint(dst, tagTotal, uint64(f.Total))
	dst = appendUint(dst, tagOffset, uint64(f.Offset))
	return endFrame(dst, start, f.Payload)
}

// AppendControl appends f to dst as [AppendCall] does.
func AppendControl(dst []byte, f *ControlFrame) []byte {
	dst, start := beginFrame(dst, len(f.Payload))
	dst = appendSeq(dst, f.Seq)
	dst = appendUint(dst, tagKind, uint64(f.Kind))
	dst = appendUint(dst, tagOffset, uint64(f.Offset))
	dst = appendUint(dst, tagLength, uint64(f.Length))
	return endFrame(dst, start, f.Payload)
}

// Durations travel in microseconds.
func durationToWire(d time.Duration) uint64 {
	if d <= 0 {
		return 0
	}
	return uint64(max(d.Microseconds(), 1))
}

func durationFromWire(v uint64) time.Duration {
	const most = uint64(1<<63-1) / uint64(time.Microsecond)
	return time.Duration(min(v, most)) * time.Microsecond
}

// Errors of the frame readers. A message that gives one is dropped whole by
// the receiving side: there is no telling whose frame it was.
var (
	errVersion = errors.New("the message has another wire version: upgrade the older side, or let both speak the older one")
	errShort   = errors.New("the message ends inside a frame")
)

// frames calls each with the head and the payload of every frame of msg, in
// order, until each returns an error.
func frames(msg []byte, each func(head, payload []byte) error) error {
	if len(msg) == 0 {
		return errShort
	}
	if msg[0] != wireVersion {
		return fmt.Errorf("version %d: %w", msg[0], errVersion)
	}
	for rest := msg[1:]; len(rest) > 0; {
		if len(rest) < frameOverhead {
			return errShort
		}
		head := uint64(binary.BigEndian.Uint32(rest))
		payload := uint64(binary.BigEndian.Uint32(rest[4:]))
		rest = rest[frameOverhead:]
		if head+payload > uint64(len(rest)) {
			return errShort
		}
		if err := each(rest[:head:head], rest[head:head+payload:head+payload]); err != nil {
			return err
		}
		rest = rest[head+payload:]
	}
	return nil
}

// fields calls each for every field of a head. The strings share one copy of
// the head.
func fields(head []byte, each func(tag byte, value string) error) error {
	s := string(head)
	for i := 0; i < len(s); {
		tag := s[i]
		n, w := uvarint(s[i+1:])
		if w <= 0 || n > uint64(len(s)-i-1-w) {
			return errShort
		}
		i += 1 + w
		if err := each(tag, s[i:i+int(n)]); err != nil {
			return err
		}
		i += int(n)
	}
	return nil
}

func uvarint(s string) (uint64, int) {
	var v uint64
	for i := 0; i < len(s) && i < binary.MaxVarintLen64; i++ {
		b := s[i]
		v |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			return v, i + 1
		}
	}
	return 0, 0
}

func number(value string) uint64 {
	v, _ := uvarint(value)
	return v
}

func sequence(value string) (uint64, error) {
	if len(value) != 8 {
		return 0, fmt.Errorf("sequence number of %d bytes: %w", len(value), errShort)
	}
	return binary.BigEndian.Uint64([]byte(value)), nil
}

func size(value string) int64 {
	return int64(min(number(value), 1<<62))
}

// ReadCalls calls each with every call of msg, in order. The frame and its
// payload share the memory of msg, which must not be changed afterwards.
func ReadCalls(msg []byte, each func(*CallFrame)) error {
	var last *CallFrame
	err := frames(msg, func(head, payload []byte) error {
		f := &CallFrame{Payload: payload}
		err := fields(head, func(tag byte, value string) (err error) {
			switch tag {
			case tagSeq:
				f.Seq, err = sequence(value)
			case tagID:
				f.ID = value
			case tagMethod:
				f.Method = value
			case tagServer:
				f.Server = value
			case tagTool:
				f.Tool = value
			case tagBudget:
				f.Budget = durationFromWire(number(value))
			case tagPrincipal:
				f.Principal = value
			case tagOwner:
				f.Owner = value
			case tagGroup:
				f.Groups = append(f.Groups, value)
			case tagToolDigest:
				f.ToolDigest = value
			case tagTraceParent:
				f.TraceParent = value
			case tagTraceState:
				f.TraceState = value
			case tagApproval:
				f.Approval = value
			case tagWarrant:
				f.Warrant = []byte(value)
			case tagExtra:
				f.Extra = []byte(value)
			case tagSession:
				f.Session = value
			case tagAttempt:
				f.Attempt = int(min(number(value), 1<<30))
			case tagFlags:
				flags := number(value)
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

// ReadReplies calls each with every reply of msg, as [ReadCalls] does. The frame
// is reused: each must copy what it keeps, except the payload.
func ReadReplies(msg []byte, each func(*ReplyFrame)) error {
	var f ReplyFrame
	return frames(msg, func(head, payload []byte) error {
		f = ReplyFrame{Payload: payload}
		err := fields(head, func(tag byte, value string) (err error) {
			switch tag {
			case tagSeq:
				f.Seq, err = sequence(value)
			case tagKind:
				f.Kind = ReplyKind(number(value))
			case tagWorker:
				f.Worker = value
			case tagTook:
				f.Took = durationFromWire(number(value))
			case tagTotal:
				f.Total = size(value)
			case tagOffset:
				f.Offset = size(value)
			case tagFlags:
				flags := number(value)
				f.ToolError, f.Started, f.Input = flags&flagToolError != 0, flags&flagStarted != 0, flags&flagInput != 0
			}
			return err
		})
		if err != nil {
			return err
		}
		each(&f)
		return nil
	})
}

// ReadControls calls each with every control frame of msg, as [ReadReplies] does.
func ReadControls(msg []byte, each func(*ControlFrame)) error {
	var f ControlFrame
	return frames(msg, func(head, payload []byte) error {
		f = ControlFrame{}
		if len(payload) > 0 {
			f.Payload = payload
		}
		err := fields(head, func(tag byte, value string) (err error) {
			switch tag {
			case tagSeq:
				f.Seq, err = sequence(value)
			case tagKind:
				f.Kind = ControlKind(number(value))
			case tagOffset:
				f.Offset = size(value)
			case tagLength:
				f.Length = size(value)
			}
			return err
		})
		if err != nil {
			return err
		}
		each(&f)
		return nil
	})
}
