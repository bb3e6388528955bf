package settings

// Encryption is the section encryption: whether what is stored of calls is encrypted, with a
// data key for each tenant. Front doors and approvers go by it.
type Encryption struct {
	// KeyFile has the keys that wrap the data keys: 32 bytes in base64 on each line, the newest
	// first. It may be the file of credentials.key_file. Empty: nothing is encrypted.
	KeyFile string `yaml:"key_file"`
}
