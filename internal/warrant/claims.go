package warrant

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/callyard/callyard/pkg/schema"
)

// Decider is the way in which an approval was given.
type Decider string

const (
	// Caller means that the caller confirmed its own call with the single-use token.
	Caller Decider = "caller"
	// People means that another person reviewed and approved the call.
	People Decider = "people"
	// Standing means that a person approved calls like this one in advance.
	Standing Decider = "standing"
)

// Deciders returns all ways of deciding.
func Deciders() []Decider { return []Decider{Caller, People, Standing} }

// hows maps wire values to ways of deciding. A value never gets a second meaning.
var hows = [...]Decider{1: Caller, 2: People, 3: Standing}

// Claims is the content of a warrant.
type Claims struct {
	ApprovalID schema.ApprovalID
	CallID     schema.CallID
	Server     schema.ServerID
	Tool       string
	// ToolDefinitionDigest and ArgumentsDigest are digests of exact bytes, in the format of
	// package digest.
	ToolDefinitionDigest string
	ArgumentsDigest      string
	// Requester and Owner identify the principal that requested the call.
	Requester string
	Owner     string
	// Level is the approved risk level, 1 to 3.
	Level         int
	PolicyVersion string
	How           Decider
	// Requirement is the approval requirement that was satisfied, in the format of
	// [risk.Requirement]. It is empty only in a warrant of version 1, which the previous release
	// signs.
	Requirement string
	// Issued is the time of signing. Deadline is the latest time at which the call may be sent to
	// the server. Both are in milliseconds since 1970.
	Issued   int64
	Deadline int64
	// KeyID is the id of the signing key; see [KeyID].
	KeyID string
}

// Encoding of a warrant (all numbers are big endian):
//
//	version (1 byte), how (1), level (1), issued (8), deadline (8),
//	tool definition digest (32), arguments digest (32), key id (10),
//	then as length (2) and bytes each: approval, call, server, tool, requester,
//	owner, policy version, requirement; and the signature (64)
//
// Version 1 has no requirement. It is read but never written, so that workers of this release run
// calls that approvers of the previous one signed.
//
// Every warrant has exactly one encoding: nothing can be left out, reordered or padded.
const (
	version1  = 1
	version   = 2
	fixedSize = 1 + 1 + 1 + 8 + 8 + 32 + 32 + keyIDSize
	texts     = 8
	sigSize   = 64
	// maxSize limits a warrant, so that it fits next to the names in the header of a frame.
	maxSize = 4 << 10
)

var (
	errShort   = errors.New("it is truncated")
	errLong    = errors.New("it has trailing data")
	errSize    = fmt.Errorf("it exceeds %d bytes", maxSize)
	errVersion = errors.New("it has an unsupported version")
	errForm    = errors.New("it has an invalid field")
)

// fields returns pointers to the texts of c in wire order.
func (c *Claims) fields() [texts]*string {
	return [...]*string{(*string)(&c.ApprovalID), (*string)(&c.CallID), (*string)(&c.Server), &c.Tool, &c.Requester, &c.Owner, &c.PolicyVersion, &c.Requirement}
}

// append appends the encoding of c without a signature.
func (c *Claims) append(dst []byte) ([]byte, error) {
	how := 0
	for i, h := range hows {
		if h == c.How && i > 0 {
			how = i
		}
	}
	if how == 0 || c.Level < 1 || c.Level > 3 || c.Issued < 0 || c.Deadline < c.Issued || c.Requirement == "" {
		return nil, errForm
	}
	dst = append(dst, version, byte(how), byte(c.Level))
	dst = binary.BigEndian.AppendUint64(dst, uint64(c.Issued))
	dst = binary.BigEndian.AppendUint64(dst, uint64(c.Deadline))
	var err error
	for _, part := range [...]struct {
		text, prefix string
		size         int
	}{{c.ToolDefinitionDigest, digestPrefix, 32}, {c.ArgumentsDigest, digestPrefix, 32}, {c.KeyID, keyIDPrefix, keyIDSize}} {
		if dst, err = appendHex(dst, part.text, part.prefix, part.size); err != nil {
			return nil, err
		}
	}
	for _, text := range c.fields() {
		if len(*text) > maxSize {
			return nil, errSize
		}
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(*text)))
		dst = append(dst, *text...)
	}
	if len(dst)+sigSize > maxSize {
		return nil, errSize
	}
	return dst, nil
}

const digestPrefix = "sha256:"

// appendHex appends the bytes of a hex text. It accepts only the canonical spelling.
func appendHex(dst []byte, text, prefix string, size int) ([]byte, error) {
	digits, ok := strings.CutPrefix(text, prefix)
	if !ok || len(digits) != 2*size || strings.ToLower(digits) != digits {
		return nil, errForm
	}
	raw, err := hex.DecodeString(digits)
	if err != nil {
		return nil, errForm
	}
	return append(dst, raw...), nil
}

// parse returns the claims and the length of the signed part.
func parse(text []byte) (*Claims, int, error) {
	switch {
	case len(text) > maxSize:
		return nil, 0, errSize
	case len(text) == 0:
		return nil, 0, errShort
	case text[0] != version && text[0] != version1:
		return nil, 0, errVersion
	case len(text) < fixedSize+sigSize:
		return nil, 0, errShort
	}
	end := len(text) - sigSize
	how, level := int(text[1]), int(text[2])
	issued, deadline := binary.BigEndian.Uint64(text[3:]), binary.BigEndian.Uint64(text[11:])
	if how < 1 || how >= len(hows) || level < 1 || level > 3 || deadline > math.MaxInt64 || issued > deadline {
		return nil, 0, errForm
	}
	c := &Claims{
		How: hows[how], Level: level, Issued: int64(issued), Deadline: int64(deadline),
		ToolDefinitionDigest: digestPrefix + hex.EncodeToString(text[19:51]),
		ArgumentsDigest:      digestPrefix + hex.EncodeToString(text[51:83]),
		KeyID:                keyIDPrefix + hex.EncodeToString(text[83:fixedSize]),
	}
	fields := c.fields()
	given := fields[:]
	if text[0] == version1 {
		given = fields[:texts-1]
	}
	rest := text[fixedSize:end]
	for _, field := range given {
		if len(rest) < 2 {
			return nil, 0, errShort
		}
		n := int(binary.BigEndian.Uint16(rest))
		if rest = rest[2:]; len(rest) < n {
			return nil, 0, errShort
		}
		*field, rest = string(rest[:n]), rest[n:]
	}
	switch {
	case len(rest) > 0:
		return nil, 0, errLong
	case text[0] == version && c.Requirement == "":
		return nil, 0, errForm
	}
	return c, end, nil
}
