package records

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/callyard/callyard/pkg/risk"
	"github.com/callyard/callyard/pkg/schema"
)

// A message holds records of one writer and one slot:
//
//	version | text writer | uvarint n, n texts | varint base | records
//
// A text is an uvarint length and bytes; base is a Unix time in ns. A record is
//
//	uvarint length | uvarint flags | state | key (16 bytes) | fields
//
// with the fields in the order of [packer.add]. Names are encoded as their number in the list of
// texts, from 1; 0 is the empty name. A reader skips bytes after the fields that it knows, so a
// later version may append fields.
const wireVersion = 1

const (
	flagToolError = 1 << iota
	flagDurable
	flagReplayed
	flagArguments   // digest of the arguments
	flagResult      // digest of the result
	flagOtherPrefix // the id does not begin with "call_"; its prefix is a text
	flagBatch       // batch, index and custom id
	flagStarted
	flagEnded
	flagError
	flagKnown // callers use another id for the call
	flagCancelRequested
	flagTenant // not the default tenant
	flagJudged // decision, rule and groups
	flagReplayOf
	flagTrace
	flagDropped
)

func stateByte(s schema.State) byte {
	for i, known := range states() {
		if s == known {
			return byte(i)
		}
	}
	return math.MaxUint8
}

// stateOf decodes a state. It returns unknown for a state that this version does not know.
func stateOf(b byte) schema.State {
	if all := states(); int(b) < len(all) {
		return all[b]
	}
	return schema.StateUnknown
}

// packer encodes one message. It can be reused after reset.
type packer struct {
	writer  string
	base    int64
	count   int
	numbers map[string]uint64 // text numbers
	texts   []byte
	records []byte
	one     []byte
	seal    func(tenant schema.TenantID, detail string) string // if nil, details are stored unencrypted
	details map[detailOf]string                                // sealed details of this message
}

// detailOf identifies a detail that calls of a tenant may share.
type detailOf struct {
	tenant schema.TenantID
	detail string
}

func newPacker(writer string, seal func(schema.TenantID, string) string) *packer {
	return &packer{writer: writer, numbers: map[string]uint64{}, seal: seal, details: map[detailOf]string{}}
}

// detail returns the detail of a record in stored form.
func (p *packer) detail(r *Record) string {
	if r.Detail == "" || p.seal == nil {
		return r.Detail
	}
	of := detailOf{r.Tenant, r.Detail}
	sealed, ok := p.details[of]
	if !ok {
		sealed = p.seal(of.tenant, of.detail)
		p.details[of] = sealed
	}
	return sealed
}

func (p *packer) reset() {
	clear(p.numbers)
	clear(p.details)
	p.base, p.count, p.texts, p.records = 0, 0, p.texts[:0], p.records[:0]
}

// size is an upper bound of the size of [packer.message].
func (p *packer) size() int { return len(p.texts) + len(p.records) + len(p.writer) + 32 }

// message returns a newly allocated message.
func (p *packer) message() []byte {
	b := make([]byte, 0, p.size())
	b = append(b, wireVersion)
	b = appendText(b, p.writer)
	b = binary.AppendUvarint(b, uint64(len(p.numbers)))
	b = append(b, p.texts...)
	b = binary.AppendVarint(b, p.base)
	return append(b, p.records...)
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

func (p *packer) number(text string) uint64 {
	if text == "" {
		return 0
	}
	n, ok := p.numbers[text]
	if !ok {
		n = uint64(len(p.numbers) + 1)
		p.numbers[text] = n
		p.texts = appendText(p.texts, text)
	}
	return n
}

// add encodes a record under its key. Its texts must be truncated already.
func (p *packer) add(k key, r *Record) {
	if p.count == 0 {
		p.base = r.Admitted
	}
	p.count++
	var flags uint64
	set := func(bit uint64, on bool) {
		if on {
			flags |= bit
		}
	}
	set(flagToolError, r.ToolError)
	set(flagDurable, r.Durable)
	set(flagReplayed, r.Replayed)
	set(flagArguments, r.Arguments != Digest{})
	set(flagResult, r.Result != Digest{})
	set(flagOtherPrefix, !usualPrefix(r.ID))
	set(flagBatch, r.Batch != "")
	set(flagStarted, r.Started != 0)
	set(flagEnded, r.Ended != 0)
	set(flagError, r.Error != "")
	set(flagKnown, r.Known != "")
	set(flagCancelRequested, r.CancelRequested)
	set(flagTenant, r.Tenant != "")
	set(flagJudged, r.Decision != "")
	set(flagReplayOf, r.ReplayOf != "")
	set(flagTrace, r.Trace != TraceID{})
	set(flagDropped, r.Dropped)

	b := binary.AppendUvarint(p.one[:0], flags)
	b = append(b, stateByte(r.State))
	b = append(b, k[:]...)
	if flags&flagOtherPrefix != 0 {
		b = appendText(b, string(r.ID[:len(r.ID)-keyText]))
	}
	for _, name := range [...]string{r.Principal, r.Owner, string(r.Server), r.Tool, r.Method, string(r.Worker), string(r.Approval)} {
		b = binary.AppendUvarint(b, p.number(name))
	}
	b = binary.AppendVarint(b, r.Admitted-p.base)
	b = binary.AppendVarint(b, r.Changed-r.Admitted)
	if flags&flagStarted != 0 {
		b = binary.AppendVarint(b, r.Started-r.Admitted)
	}
	if flags&flagEnded != 0 {
		b = binary.AppendVarint(b, r.Ended-r.Changed)
	}
	b = binary.AppendVarint(b, int64(r.Took))
	b = binary.AppendVarint(b, int64(r.Attempt))
	b = binary.AppendVarint(b, r.ArgumentBytes)
	b = binary.AppendVarint(b, r.ResultBytes)
	if flags&flagArguments != 0 {
		b = append(b, r.Arguments[:]...)
	}
	if flags&flagResult != 0 {
		b = append(b, r.Result[:]...)
	}
	if flags&flagError != 0 {
		b = binary.AppendUvarint(b, p.number(string(r.Error)))
		b = binary.AppendUvarint(b, p.number(p.detail(r)))
	}
	if flags&flagBatch != 0 {
		b = binary.AppendUvarint(b, p.number(string(r.Batch)))
		b = binary.AppendVarint(b, r.Index)
		b = appendText(b, r.CustomID) // unique to the record, so not in the list of texts
	}
	if flags&flagKnown != 0 {
		b = appendText(b, string(r.Known))
	}
	if flags&flagTenant != 0 {
		b = binary.AppendUvarint(b, p.number(string(r.Tenant)))
	}
	if flags&flagJudged != 0 {
		b = binary.AppendUvarint(b, p.number(string(r.Decision)))
		b = binary.AppendUvarint(b, p.number(r.Rule))
		b = binary.AppendUvarint(b, p.number(r.Groups))
	}
	if flags&flagReplayOf != 0 {
		b = appendText(b, string(r.ReplayOf))
	}
	if flags&flagTrace != 0 {
		b = append(b, r.Trace[:]...)
	}
	p.one = b
	p.records = binary.AppendUvarint(p.records, uint64(len(b)))
	p.records = append(p.records, b...)
}

var errTorn = errors.New("it is truncated")

// unpack calls f with each record of a message whose key is wanted. f may keep the record.
func unpack(data []byte, want func(key) bool, f func(key, *Record)) error {
	return unpackInto(nil, data, want, f)
}

// unpackInto is [unpack], but passes the same record each time, which f may not keep. If into is nil,
// each record is newly allocated.
func unpackInto(into *Record, data []byte, want func(key) bool, f func(key, *Record)) error {
	if len(data) == 0 {
		return errTorn
	}
	if data[0] != wireVersion {
		return fmt.Errorf("it has version %d, and this program reads version %d", data[0], wireVersion)
	}
	m := parser{rest: data[1:]}
	writer := m.text()
	n := m.uvarint()
	if n > uint64(len(m.rest)) { // each text takes at least one byte
		return errTorn
	}
	m.texts = make([]string, n)
	for i := range m.texts {
		m.texts[i] = m.text()
	}
	base := m.varint()
	for len(m.rest) > 0 && !m.torn {
		one := parser{rest: m.take(m.uvarint()), texts: m.texts}
		flags := one.uvarint()
		state := one.take(1)
		var k key
		copy(k[:], one.take(uint64(len(k))))
		if one.torn {
			return errTorn
		}
		if !want(k) {
			continue
		}
		r := into
		if r == nil {
			r = new(Record)
		}
		*r = Record{FrontDoor: writer, State: stateOf(state[0])}
		one.fields(r, k, flags, base)
		if one.torn {
			return errTorn
		}
		f(k, r)
	}
	if m.torn {
		return errTorn
	}
	return nil
}

// parser reads from the front of rest. torn is set if the data ended early.
type parser struct {
	rest  []byte
	texts []string
	torn  bool
}

func (p *parser) fields(r *Record, k key, flags uint64, base int64) {
	r.ToolError, r.Durable, r.Replayed = flags&flagToolError != 0, flags&flagDurable != 0, flags&flagReplayed != 0
	r.CancelRequested, r.Dropped = flags&flagCancelRequested != 0, flags&flagDropped != 0
	if flags&flagOtherPrefix != 0 {
		r.ID = schema.CallID(p.text() + k.String())
	} else {
		r.ID = k.id()
	}
	for _, to := range [...]*string{&r.Principal, &r.Owner, (*string)(&r.Server), &r.Tool, &r.Method, (*string)(&r.Worker), (*string)(&r.Approval)} {
		*to = p.name()
	}
	r.Admitted = base + p.varint()
	r.Changed = r.Admitted + p.varint()
	if flags&flagStarted != 0 {
		r.Started = r.Admitted + p.varint()
	}
	if flags&flagEnded != 0 {
		r.Ended = r.Changed + p.varint()
	}
	r.Took = time.Duration(p.varint())
	r.Attempt = int(p.varint())
	r.ArgumentBytes, r.ResultBytes = p.varint(), p.varint()
	if flags&flagArguments != 0 {
		copy(r.Arguments[:], p.take(uint64(len(r.Arguments))))
	}
	if flags&flagResult != 0 {
		copy(r.Result[:], p.take(uint64(len(r.Result))))
	}
	if flags&flagError != 0 {
		r.Error, r.Detail = schema.Kind(p.name()), p.name()
	}
	if flags&flagBatch != 0 {
		r.Batch, r.Index, r.CustomID = schema.BatchID(p.name()), p.varint(), p.text()
	}
	if flags&flagKnown != 0 {
		r.Known = schema.CallID(p.text())
	}
	if flags&flagTenant != 0 {
		r.Tenant = schema.TenantID(p.name())
	}
	if flags&flagJudged != 0 {
		r.Decision, r.Rule, r.Groups = risk.Decision(p.name()), p.name(), p.name()
	}
	if flags&flagReplayOf != 0 {
		r.ReplayOf = schema.CallID(p.text())
	}
	if flags&flagTrace != 0 {
		copy(r.Trace[:], p.take(uint64(len(r.Trace))))
	}
}

func (p *parser) take(n uint64) []byte {
	if n > uint64(len(p.rest)) {
		p.torn, p.rest = true, nil
		return nil
	}
	b := p.rest[:n]
	p.rest = p.rest[n:]
	return b
}

func (p *parser) uvarint() uint64 {
	v, n := binary.Uvarint(p.rest)
	if n <= 0 {
		p.torn, p.rest = true, nil
		return 0
	}
	p.rest = p.rest[n:]
	return v
}

func (p *parser) varint() int64 {
	v, n := binary.Varint(p.rest)
	if n <= 0 {
		p.torn, p.rest = true, nil
		return 0
	}
	p.rest = p.rest[n:]
	return v
}

func (p *parser) text() string { return string(p.take(p.uvarint())) }

// name reads a reference to one of the message's texts.
func (p *parser) name() string {
	switch n := p.uvarint(); {
	case n == 0:
		return ""
	case n <= uint64(len(p.texts)):
		return p.texts[n-1]
	}
	p.torn = true
	return ""
}
