# serve BIN FLAGS… starts a service on a free port of loopback with the API key "secret", and waits until it listens. It
# sets url, and pid, which the caller ends. The log goes to $scratch/log.
serve() {
  "$1" serve --port 0 --api-key secret "${@:2}" 2>"$scratch/log" &
  pid=$!
  for _ in $(seq 600); do
    url=$(sed -n 's/^listening at \([^ ]*\).*/\1/p' "$scratch/log")
    [ -z "$url" ] || return 0
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.1
  done
  cat "$scratch/log"
  echo "the service did not start"
  return 1
}
