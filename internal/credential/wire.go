package credential

import (
	"context"
	"crypto/ecdh"
	"crypto/hpke"
	"encoding/json"
	"errors"
	"net/url"
	"strings"

	"github.com/callyard/callyard/pkg/schema"
)

// A worker that runs a call requests the credential of the person from the call's front door. The
// request contains an ephemeral public key, and the response is sealed to that key (HPKE, RFC 9180:
// X25519, HKDF-SHA256, AES-256-GCM), so that NATS and its other users see only ciphertext. Both
// sides must agree on the origin of the server.

type question struct {
	Method string `json:"method"`
	Params struct {
		Key     []byte `json:"key"`
		Origin  string `json:"origin"`
		Refused uint64 `json:"refused,omitempty,string"`
	} `json:"params"`
}

const askMethod = "callyard/credential"

type reply struct {
	Result []byte        `json:"result,omitempty"`
	Error  *schema.Error `json:"error,omitempty"`
}

// sealed is the plaintext of a response.
type sealed struct {
	Header  string `json:"header"`
	Value   string `json:"value"`
	Version uint64 `json:"version,string"`
}

// Origin returns the scheme, host and port of an address. Credentials are bound to it.
func Origin(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	host, port := strings.ToLower(u.Hostname()), u.Port()
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	scheme := strings.ToLower(u.Scheme)
	if port != "" && (scheme != "https" || port != "443") && (scheme != "http" || port != "80") {
		host += ":" + port
	}
	return scheme + "://" + host
}

// info returns the context that the seal is bound to.
func info(call schema.CallID, server schema.ServerID, origin string) []byte {
	return place("callyard credential", string(call), string(server), origin)
}

// Question is one request of a worker for one call.
type Question struct {
	key    hpke.PrivateKey
	call   schema.CallID
	server schema.ServerID
	origin string
	// Message is the encoded request.
	Message []byte
}

// Ask creates a request. refused is the version of a credential that the server rejected; 0 means
// none.
func Ask(call schema.CallID, server schema.ServerID, address string, refused uint64) (*Question, error) {
	key, err := hpke.DHKEM(ecdh.X25519()).GenerateKey()
	if err != nil {
		return nil, err
	}
	q := &Question{key: key, call: call, server: server, origin: Origin(address)}
	w := question{Method: askMethod}
	w.Params.Key, w.Params.Origin, w.Params.Refused = key.PublicKey().Bytes(), q.origin, refused
	q.Message, err = json.Marshal(w)
	return q, err
}

// Answer returns the response to a request for a call of who at server. It always returns a
// response: faults are encoded in it. A nil book has no credentials of people.
func (b *Book) Answer(ctx context.Context, call schema.CallID, server schema.ServerID, who *schema.Principal, message []byte) []byte {
	result, err := b.answer(ctx, call, server, who, message)
	r := reply{Result: result}
	if err != nil {
		r.Error = schema.AsError(err)
	}
	text, err := json.Marshal(r)
	if err != nil {
		return []byte(`{"error":{"kind":"internal","detail":"The credential cannot be sent."}}`)
	}
	return text
}

func (b *Book) answer(ctx context.Context, call schema.CallID, server schema.ServerID, who *schema.Principal, message []byte) ([]byte, error) {
	var q question
	if json.Unmarshal(message, &q) != nil || q.Method != askMethod {
		return nil, schema.Errorf(schema.KindInvalidRequest, "A worker's question for a credential cannot be read.")
	}
	s := b.Server(server)
	switch {
	case s == nil:
		return nil, schema.Errorf(schema.KindServerFailed, "Server %q requires a credential of each person, and \"credentials.servers\" of the front door does not list it. The call did not start.", server)
	case s.origin() != q.Params.Origin:
		return nil, schema.Errorf(schema.KindServerFailed, "Server %q has another address at the worker than in \"credentials.servers\"; its credentials are not sent there. The call did not start.", server)
	}
	key, err := hpke.DHKEM(ecdh.X25519()).NewPublicKey(q.Params.Key)
	if err != nil {
		return nil, schema.Errorf(schema.KindInvalidRequest, "A worker's question for a credential has no valid key.")
	}
	c, err := b.of(ctx, s, who, q.Params.Refused)
	if err != nil {
		return nil, err
	}
	plain, err := json.Marshal(sealed(c))
	if err != nil {
		return nil, err
	}
	return hpke.Seal(key, hpke.HKDFSHA256(), hpke.AES256GCM(), info(call, server, s.origin()), plain)
}

// of returns the credential of a principal at a server.
func (b *Book) of(ctx context.Context, s *Server, who *schema.Principal, refused uint64) (Credential, error) {
	if s.Exchange != nil {
		return b.exchange(ctx, s, who, refused)
	}
	return b.Get(ctx, s.ID, Person(who), refused)
}

// Ready returns the error with which a call of a principal would fail for lack of a credential at a
// server. It returns nil if the credential is available, or if the server needs none of this book.
func (b *Book) Ready(ctx context.Context, who *schema.Principal, server schema.ServerID) error {
	s := b.Server(server)
	if s == nil {
		return nil
	}
	_, err := b.of(ctx, s, who, 0)
	return err
}

// errAnswer means that a response does not belong to the request.
var errAnswer = errors.New("the answer of the front door cannot be opened")

// Open decrypts the response. If the response contains a fault, Open returns it as the error.
func (q *Question) Open(object []byte) (Credential, error) {
	var r reply
	if json.Unmarshal(object, &r) != nil {
		return Credential{}, errAnswer
	}
	if r.Error != nil {
		return Credential{}, r.Error
	}
	plain, err := hpke.Open(q.key, hpke.HKDFSHA256(), hpke.AES256GCM(), info(q.call, q.server, q.origin), r.Result)
	var s sealed
	if err != nil || json.Unmarshal(plain, &s) != nil || s.Header == "" || s.Value == "" {
		return Credential{}, errAnswer
	}
	return Credential(s), nil
}
