// Compares tree heads of one log, with golang.org/x/mod/sumdb. For monitors and auditors.
//
// It guarantees, if it exits with 0:
//   - Every tree head is signed by a key that was given, and all are of the same log.
//   - With OLD and NEW: the proof, an answer of GET /api/audit/consistency or of `ipse proof
//     consistency --json`, leads from OLD to NEW (tlog.CheckTree). So nothing under OLD was changed
//     or taken away.
//   - With -witness: the witness with that verifier key cosigned the last tree head, as
//     cosignature/v1 of C2SP tlog-cosignature.
//
// Exit 1: a contradiction, or a missing cosignature. Exit 2: it could not compare.
//
//	heads [-witness KEY] LOG.vkey HEAD
//	heads [-witness KEY] -proof ANSWER.json LOG.vkey OLD NEW
package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

func end(code int, place string, what interface{}) {
	fmt.Fprintf(os.Stderr, "heads: %s: %v\n", place, what)
	os.Exit(code)
}

func read(path string) []byte {
	data, err := os.ReadFile(path)
	if err != nil {
		end(2, path, err)
	}
	return data
}

func verifiers(path string) note.Verifiers {
	var list []note.Verifier
	for _, line := range strings.Fields(string(read(path))) {
		verifier, err := note.NewVerifier(line)
		if err != nil {
			end(2, path, err)
		}
		list = append(list, verifier)
	}
	return note.VerifierList(list...)
}

// head is a signed tree head.
type head struct {
	origin string
	size   int64
	root   tlog.Hash
}

func open(path string, known note.Verifiers) head {
	opened, err := note.Open(read(path), known)
	if err != nil {
		end(2, path, err)
	}
	lines := strings.Split(opened.Text, "\n")
	if len(lines) != 4 || lines[0] != opened.Sigs[0].Name {
		end(2, path, "is no tree head of the log of that key")
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil || size < 0 || strconv.FormatInt(size, 10) != lines[1] {
		end(2, path, "the size is no number")
	}
	root, err := tlog.ParseHash(lines[2])
	if err != nil {
		end(2, path, err)
	}
	return head{lines[0], size, root}
}

// witness is a note.Verifier for cosignature/v1: a signature over a time and the tree head.
type witness struct {
	name string
	hash uint32
	key  ed25519.PublicKey
}

func (w witness) Name() string    { return w.name }
func (w witness) KeyHash() uint32 { return w.hash }

func (w witness) Verify(text, signature []byte) bool {
	if len(signature) != 8+ed25519.SignatureSize {
		return false
	}
	time := binary.BigEndian.Uint64(signature)
	message := append([]byte(fmt.Sprintf("cosignature/v1\ntime %d\n", time)), text...)
	return time < 1<<63 && ed25519.Verify(w.key, message, signature[8:])
}

// newWitness reads a verifier key: name+id+base64(0x04 || key).
func newWitness(text string) (note.Verifier, error) {
	parts := strings.SplitN(strings.TrimSpace(text), "+", 3)
	if len(parts) != 3 {
		return nil, errors.New("is no verifier key")
	}
	id, err := strconv.ParseUint(parts[1], 16, 32)
	if err != nil {
		return nil, err
	}
	key, err := base64.StdEncoding.DecodeString(parts[2])
	if err != nil || len(key) != 33 || key[0] != 4 {
		return nil, errors.New("is no key of a witness")
	}
	sum := sha256.Sum256(append([]byte(parts[0]+"\n"), key...))
	if binary.BigEndian.Uint32(sum[:]) != uint32(id) {
		return nil, errors.New("the id is not that of the key")
	}
	return witness{parts[0], uint32(id), key[1:]}, nil
}

func cosigned(path, key string) {
	verifier, err := newWitness(key)
	if err != nil {
		end(2, "-witness", err)
	}
	opened, err := note.Open(read(path), note.VerifierList(verifier))
	if err != nil {
		end(1, path, fmt.Sprintf("%s did not cosign it: %v", verifier.Name(), err))
	}
	fmt.Printf("heads: %s: cosigned by %s\n", path, opened.Sigs[0].Name)
}

// continues demands that the proof leads from one tree head to the other.
func continues(old, now head, places []string, path string) {
	if old.origin != now.origin {
		end(2, places[1], "is of another log")
	}
	if now.size < old.size {
		what := "the log had %d entries before, and has %d now: rolled back"
		end(1, places[1], fmt.Sprintf(what, old.size, now.size))
	}
	if now.size == old.size || old.size == 0 {
		if now.size == old.size && now.root != old.root {
			end(1, places[1], fmt.Sprintf("another root over the same %d entries: a fork", now.size))
		}
		return
	}
	var answer struct{ Hashes []string }
	if err := json.Unmarshal(bytes.TrimSpace(read(path)), &answer); err != nil {
		end(2, path, err)
	}
	var proof tlog.TreeProof
	for _, text := range answer.Hashes {
		hash, err := tlog.ParseHash(text)
		if err != nil {
			end(2, path, err)
		}
		proof = append(proof, hash)
	}
	if err := tlog.CheckTree(proof, now.size, now.root, old.size, old.root); err != nil {
		what := "does not show that %d entries continue those %d: %v"
		end(1, path, fmt.Sprintf(what, now.size, old.size, err))
	}
}

func main() {
	proof := flag.String("proof", "", "an answer of /api/audit/consistency, from OLD to NEW")
	key := flag.String("witness", "", "the verifier key of a witness")
	flag.Parse()
	if flag.NArg() != 2 && flag.NArg() != 3 || (*proof == "") == (flag.NArg() == 3) {
		end(2, "arguments", "heads [-witness KEY] [-proof ANSWER.json] LOG.vkey [OLD] HEAD")
	}
	known, places := verifiers(flag.Arg(0)), flag.Args()[1:]
	var heads []head
	for _, path := range places {
		heads = append(heads, open(path, known))
	}
	last := len(heads) - 1
	if last == 1 {
		continues(heads[0], heads[1], places, *proof)
		fmt.Printf("heads: %d entries continue those %d\n", heads[1].size, heads[0].size)
	}
	if *key != "" {
		cosigned(places[last], *key)
	}
}
