#!/bin/sh
# Signs events with openssl and jq, and prints the signed file.
#
#     sign.sh EVENTS KEY KEYID IDENTITY
#
# EVENTS has one event per line in canonical form, each with its salt. KEY is a private key of
# OpenSSL, KEYID its name and id (NAME+ID) as `ipse key new producer NAME --source SOURCE --public
# KEY.pem` prints them. The statement is as jq prints it: indented, not canonical JSON.
set -eu
events=$1 key=$2 keyid=$3 identity=$4
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT

while IFS= read -r line; do
    name=$(printf '%s' "$line" | jq -j '.source, "\n", .id' | sha256sum | cut -c1-32)
    digest=$(printf '%s' "$line" | sha256sum | cut -c1-64)
    jq -n --arg name "ev_$name" --arg digest "$digest" '{name: $name, digest: {sha256: $digest}}'
done < "$events" > "$work/subjects"

jq -s --arg identity "$identity" '{
    _type: "https://in-toto.io/Statement/v1", subject: .,
    predicateType: "urn:ipse:sent:v1", predicate: {identity_hash: $identity}
}' "$work/subjects" > "$work/statement"

# DSSE signs the type and the payload, each with its length.
type=application/vnd.in-toto+json
{
    printf 'DSSEv1 %d %s %d ' "${#type}" "$type" "$(wc -c < "$work/statement")"
    cat "$work/statement"
} > "$work/message"
openssl pkeyutl -sign -inkey "$key" -rawin -in "$work/message" -out "$work/signature"

cat "$events"
jq -n -c --arg type "$type" --arg keyid "$keyid" \
    --arg payload "$(base64 < "$work/statement" | tr -d '\n')" \
    --arg sig "$(base64 < "$work/signature" | tr -d '\n')" \
    '{payloadType: $type, payload: $payload, signatures: [{keyid: $keyid, sig: $sig}]}'
