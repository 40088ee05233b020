// Checks the tree over the log of an unpacked bundle, with golang.org/x/mod/sumdb.
//
// It guarantees, if it exits with 0:
//   - tree-head.note is signed by a key that was given, and is about the identity of manifest.json.
//   - Its size and root are those of entries.jsonl, computed here.
//   - With -anchor: the tree head in that file, signed by such a key too, is of the same log, and
//     the log in the bundle goes on from there: nothing before it was changed or taken away.
//   - With -proof: the proof in that file leads from an entry of the bundle to a signed tree head
//     of the same log.
//
// Keys inside the bundle are never read. Exit 1 names the file and what is wrong with it.
//
//	tree [-anchor FILE] [-proof FILE] LOG.vkey DIRECTORY
package main

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

func wrong(place string, what interface{}) {
	fmt.Fprintf(os.Stderr, "tree: %s: %v\n", place, what)
	os.Exit(1)
}

func read(path string) []byte {
	data, err := os.ReadFile(path)
	if err != nil {
		wrong(path, err)
	}
	return data
}

// verifiers reads keys, one a line.
func verifiers(path string) note.Verifiers {
	var list []note.Verifier
	for _, line := range strings.Fields(string(read(path))) {
		verifier, err := note.NewVerifier(line)
		if err != nil {
			wrong(path, err)
		}
		list = append(list, verifier)
	}
	return note.VerifierList(list...)
}

// head is what a signed tree head says.
type head struct {
	size int64
	root tlog.Hash
}

// open reads a tree head of that log, signed by a known key of the log's name.
func open(place string, message []byte, known note.Verifiers, origin string) head {
	opened, err := note.Open(message, known)
	if err != nil {
		wrong(place, err)
	}
	lines := strings.Split(opened.Text, "\n")
	if len(lines) != 4 || lines[0] != origin || opened.Sigs[0].Name != origin {
		wrong(place, "is no tree head of "+origin)
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil || size < 0 || strconv.FormatInt(size, 10) != lines[1] {
		wrong(place, "the size is no number")
	}
	root, err := tlog.ParseHash(lines[2])
	if err != nil {
		wrong(place, err)
	}
	return head{size, root}
}

// tree is every entry, and the hashes that tlog wants to have stored.
type tree struct {
	entries [][]byte
	hashes  []tlog.Hash
}

func (t *tree) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	var found []tlog.Hash
	for _, index := range indexes {
		found = append(found, t.hashes[index])
	}
	return found, nil
}

func grow(path string) *tree {
	t := new(tree)
	for _, line := range bytes.SplitAfter(read(path), []byte("\n")) {
		if len(line) == 0 {
			break
		}
		entry := bytes.TrimSuffix(line, []byte("\n"))
		stored, err := tlog.StoredHashes(int64(len(t.entries)), entry, t)
		if err != nil {
			wrong(path, err)
		}
		t.entries, t.hashes = append(t.entries, entry), append(t.hashes, stored...)
	}
	return t
}

// root is the root over the first entries.
func (t *tree) root(size int64) tlog.Hash {
	if size == 0 {
		// RFC 6962 says the hash of nothing; older versions of tlog say zero.
		return sha256.Sum256(nil)
	}
	root, err := tlog.TreeHash(size, t)
	if err != nil {
		wrong("entries.jsonl", err)
	}
	return root
}

// continues demands that the log goes on from an earlier head: the first entries of this log, whose
// root is the signed one, have the earlier root.
func (t *tree) continues(place string, earlier, now head) {
	if earlier.size > now.size {
		what := "the log had %d entries then, and has %d here: rolled back"
		wrong(place, fmt.Sprintf(what, earlier.size, now.size))
	}
	if t.root(earlier.size) != earlier.root {
		wrong(place, fmt.Sprintf("the first %d entries were others then: a fork", earlier.size))
	}
	fmt.Printf("tree: %s: this log continues those %d entries\n", place, earlier.size)
}

// proves checks a proof file: C2SP tlog-proof, without extra data.
func (t *tree) proves(place string, known note.Verifiers, origin string) {
	parts := strings.SplitN(string(read(place)), "\n\n", 2)
	lines := strings.Split(parts[0], "\n")
	if len(parts) != 2 || len(lines) < 2 || lines[0] != "c2sp.org/tlog-proof@v1" {
		wrong(place, "is no proof")
	}
	index, err := strconv.ParseInt(strings.TrimPrefix(lines[1], "index "), 10, 64)
	if err != nil || lines[1] != fmt.Sprintf("index %d", index) {
		wrong(place, "the index is no number")
	}
	if index < 0 || index >= int64(len(t.entries)) {
		wrong(place, "is about an entry that the bundle does not have")
	}
	var proof tlog.RecordProof
	for _, line := range lines[2:] {
		hash, err := tlog.ParseHash(line)
		if err != nil {
			wrong(place, err)
		}
		proof = append(proof, hash)
	}
	signed := open(place, []byte(parts[1]), known, origin)
	entry := t.entries[index]
	err = tlog.CheckRecord(proof, signed.size, signed.root, index, tlog.RecordHash(entry))
	if err != nil {
		wrong(place, err)
	}
	fmt.Printf("tree: %s: entry %d of %d is %s\n", place, index+1, signed.size, entry)
}

func main() {
	anchor := flag.String("anchor", "", "a tree head that you kept")
	proof := flag.String("proof", "", "a proof file that you were given")
	flag.Parse()
	if flag.NArg() != 2 {
		wrong("arguments", "tree [-anchor FILE] [-proof FILE] LOG.vkey DIRECTORY")
	}
	known, directory := verifiers(flag.Arg(0)), flag.Arg(1)
	identity := sha256.Sum256(read(filepath.Join(directory, "manifest.json")))
	origin := fmt.Sprintf("ipse/%x", identity)
	now := open("tree-head.note", read(filepath.Join(directory, "tree-head.note")), known, origin)
	t := grow(filepath.Join(directory, "entries.jsonl"))
	if size := int64(len(t.entries)); size != now.size {
		wrong("entries.jsonl", fmt.Sprintf("%d entries, and the head covers %d", size, now.size))
	}
	if t.root(now.size) != now.root {
		wrong("entries.jsonl", "their root is not the signed one")
	}
	fmt.Printf("tree: %d entries, and their root is the signed one\n", now.size)
	if *anchor != "" {
		t.continues(*anchor, open(*anchor, read(*anchor), known, origin), now)
	}
	if *proof != "" {
		t.proves(*proof, known, origin)
	}
}
