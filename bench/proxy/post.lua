-- wrk sends a POST whose body differs each time in twelve digits, and prints what it measured as one line of JSON.
-- Arguments: file of the body's first part, file of its last part, the number to begin with, "name: value" headers.
local first, last, number, head

local function read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read("*a")
  file:close()
  return text
end

function init(args)
  first, last, number = read(args[1]), read(args[2]), tonumber(args[3])
  local lines = {
    "POST " .. wrk.path .. " HTTP/1.1", "Host: " .. wrk.headers["Host"], "Content-Type: application/json",
    "Content-Length: " .. (#first + #last + 12),
  }
  for at = 4, #args do lines[#lines + 1] = args[at] end
  head = table.concat(lines, "\r\n") .. "\r\n\r\n" .. first
end

function request()
  number = number + 1
  return head .. string.format("%012d", number) .. last
end

function done(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format(
    '\nJSON {"requests": %d, "seconds": %.6f, "p50_ms": %.4f, "p99_ms": %.4f, "refused": %d, "broken": %d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    errors.status, errors.connect + errors.read + errors.write + errors.timeout))
end
