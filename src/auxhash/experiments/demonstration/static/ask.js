// Requests to the service; where it wants a token, the visitor is asked for it once.

import { byId } from "./dom.js";

let token = null; // in memory only: gone with the page
let asking = null;

export async function get(path) {
  return answered(path, {});
}

export async function post(path, body) {
  return answered(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
}

async function answered(path, options) {
  const headers = { ...options.headers };
  if (token) headers.Authorization = `Bearer ${token}`;
  let response;
  try {
    response = await fetch(path, { ...options, headers });
  } catch {
    throw new Error("The service does not answer.");
  }
  if (response.status === 401) {
    await askForToken("Authorization" in headers);
    return answered(path, options);
  }
  const text = await response.text();
  let found = null;
  try {
    found = JSON.parse(text);
  } catch {
    // an answer that is no JSON; its status tells
  }
  if (!response.ok) throw new Error(reason(found) ?? `The service answered ${response.status}.`);
  return found;
}

function reason(found) {
  const told = found?.error ?? found?.detail;
  return typeof told === "string" ? told : null;
}

function askForToken(wrong) {
  asking ??= new Promise((resolve) => {
    const form = byId("token-form");
    if (wrong) byId("token-why").textContent = "That token is wrong: this service has another";
    form.hidden = false;
    byId("token").focus();
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      token = byId("token").value;
      byId("token").value = "";
      form.hidden = true;
      asking = null;
      resolve();
    }, { once: true });
  });
  return asking;
}
