package settings

// Encryption is the section encryption. It encrypts stored call data with a data key for each
// tenant. Front doors and approvers read it.
type Encryption struct {
	// KeyFile holds the keys that wrap the data keys, one on each line: 32 bytes in base64, newest
	// first. It may be the file of credentials.key_file. If empty, nothing is encrypted.
	KeyFile string `yaml:"key_file"`
}
