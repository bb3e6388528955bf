package bus

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/callyard/callyard/pkg/bus/frame"
	"github.com/callyard/callyard/pkg/schema"
)

// MethodOutcomes requests from a worker the outcomes of calls that were sent to it with
// [CallFrame.Keep]. The payload is an [OutcomeQuery] as JSON. The response has one frame for
// each call, in the order of the query; see [ReadOutcomes].
const MethodOutcomes = "callyard/outcomes"

// OutcomeQuery is the payload of [MethodOutcomes].
type OutcomeQuery struct {
	CallIDs []schema.CallID `json:"call_ids"`
	// Within is the maximum time since the calls were sent. Zero means unknown. It is
	// relative, so that clocks need not agree.
	Within time.Duration `json:"within_ns,omitempty"`
	// Brief means that the calls were sent with [CallFrame.Brief].
	Brief bool `json:"brief,omitempty"`
	// Seqs, if set, has one element per call: the number under which the requester sent the
	// call and waits for it. If the call never started, the worker refuses this number from
	// now on, in case the call still arrives; see [Outcome.Refused].
	Seqs []uint64 `json:"seqs,omitempty"`
}

// OutcomeState is the state of a call at one worker.
type OutcomeState byte

const (
	// OutcomeNever: the call did not start at this worker. If it still arrives from any other
	// router than the requester, it is refused, unless the query has Seqs.
	OutcomeNever OutcomeState = 1
	// OutcomeRunning: the call is in progress, or waits for a session.
	OutcomeRunning OutcomeState = 2
	// OutcomeEnded: the call ended with Result or Err.
	OutcomeEnded OutcomeState = 3
	// OutcomeForgotten: the call may have reached the worker, which no longer has a
	// record of it. The call may have run or not.
	OutcomeForgotten OutcomeState = 4
)

// String returns the name of the state.
func (s OutcomeState) String() string {
	switch s {
	case OutcomeNever:
		return "never"
	case OutcomeRunning:
		return "running"
	case OutcomeEnded:
		return "ended"
	case OutcomeForgotten:
		return "forgotten"
	}
	return fmt.Sprintf("OutcomeState(%d)", byte(s))
}

// Outcome is the outcome of one call according to a worker.
type Outcome struct {
	CallID schema.CallID
	State  OutcomeState
	// Result is the result of the tool, with [OutcomeEnded]. If it was too large to be kept,
	// its Body is nil, and Err is of kind [schema.KindResultTooLarge]. Then only ToolError,
	// Took and the digest in the detail of Err are known.
	Result *schema.Result
	// Err is the error that ended the call without a result, with [OutcomeEnded].
	Err *schema.Error
	// Refused means, with [OutcomeNever], that the call as it was sent will not start. It may
	// be sent again under another number.
	Refused bool
}

// AppendOutcome appends f to dst, which is empty or contains earlier outcomes, and returns the
// extended message.
func AppendOutcome(dst []byte, f *Outcome) []byte {
	var body []byte
	flags := frame.Bit(flagRefused, f.Refused)
	if f.Result != nil {
		body = f.Result.Body
		flags |= flagAnswered | frame.Bit(flagToolError, f.Result.ToolError) | frame.Bit(flagInput, f.Result.InputRequired)
	}
	dst, start := beginFrame(dst)
	dst = frame.AppendString(dst, tagID, f.CallID)
	dst = frame.AppendUint(dst, tagOutcome, uint64(f.State))
	dst = frame.AppendUint(dst, tagFlags, flags)
	if f.Result != nil {
		dst = frame.AppendString(dst, tagWorker, f.Result.Worker)
		dst = frame.AppendDuration(dst, tagTook, f.Result.Took)
	}
	if f.Err != nil {
		e, err := json.Marshal(f.Err)
		if err != nil { // only the data of a JSON-RPC error can be invalid JSON
			e, _ = json.Marshal(&schema.Error{Kind: f.Err.Kind, CallID: f.Err.CallID, Detail: f.Err.Detail}) // strings only
		}
		dst = frame.AppendString(dst, tagError, string(e))
	}
	return frame.End(dst, start, body)
}

// ReadOutcomes calls each with every outcome of msg, in order. Bodies share the memory of msg,
// so msg must not be changed afterwards.
func ReadOutcomes(msg []byte, each func(Outcome)) error {
	return frames(msg, func(head, payload []byte) error {
		var f Outcome
		var r schema.Result
		answered := false
		err := frame.Fields(head, func(tag byte, value string) error {
			switch tag {
			case tagID:
				f.CallID = schema.CallID(value)
			case tagOutcome:
				f.State = OutcomeState(min(frame.Uint(value), 255))
			case tagWorker:
				r.Worker = schema.WorkerID(value)
			case tagTook:
				r.Took = frame.Duration(value)
			case tagFlags:
				flags := frame.Uint(value)
				answered, r.ToolError, r.InputRequired = flags&flagAnswered != 0, flags&flagToolError != 0, flags&flagInput != 0
				f.Refused = flags&flagRefused != 0
			case tagError:
				f.Err = &schema.Error{}
				if err := json.Unmarshal([]byte(value), f.Err); err != nil {
					return fmt.Errorf("reading the outcome of call %s: %w", f.CallID, err)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		if answered {
			if r.Body = payload; len(payload) == 0 {
				r.Body = nil
			}
			f.Result = &r
		}
		each(f)
		return nil
	})
}
