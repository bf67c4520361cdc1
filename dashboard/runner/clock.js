// How far the browser's clock is from the server's, as NTP has it (RFC 5905, section 8); the quickest of a few rounds.

const ROUNDS = 3;

export async function clockOffset(net) {
  const rounds = [];
  for (let i = 0; i < ROUNDS; i++) {
    const sent = performance.now();
    const { status, body } = await net.once("GET", "time");
    const back = performance.now();
    if (status !== 200) continue;
    const middle = performance.timeOrigin + (sent + back) / 2;
    rounds.push({ round_trip_ms: back - sent, offset_ms: body.now_ms - middle });
  }
  rounds.sort((one, other) => one.round_trip_ms - other.round_trip_ms);
  if (rounds.length) net.log("clock", null, rounds[0]);
}
